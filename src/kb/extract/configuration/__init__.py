"""Configuration: environment variables, settings and command lines that the code reads."""
