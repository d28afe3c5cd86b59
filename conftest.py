"""What tests, gates and benchmarks share: the database fixtures, and no network."""

pytest_plugins = ["tests.databases"]
