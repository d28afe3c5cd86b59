"""One module per command; each exposes `command`, and imports its use case only when it runs."""
