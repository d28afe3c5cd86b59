"""Entities: the data shapes of a codebase, their fields, keys and relations across files."""
