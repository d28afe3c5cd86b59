"""Reads snapshots: units with provenance and freshness, status, gaps, search."""
