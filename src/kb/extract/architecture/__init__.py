"""Architecture: packages and how they depend on each other, cycles, layers, contracts, entry points."""
