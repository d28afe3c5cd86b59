"""API contracts: one artifact per operation that a web framework would serve, grounded across files."""
