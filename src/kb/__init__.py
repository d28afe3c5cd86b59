"""kb: a versioned, provenance-grounded knowledge service over git repositories."""

__version__ = "0.1.0"
