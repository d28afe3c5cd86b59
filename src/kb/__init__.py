"""kb: a versioned, provenance-grounded knowledge service over git repositories."""
