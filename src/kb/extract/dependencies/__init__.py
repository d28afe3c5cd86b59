"""Dependencies: what manifests and lock files declare, joined to what the code imports."""
