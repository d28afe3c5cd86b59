"""LOCKED: how spans and artifacts get their ids. A change here changes every id (docs/identity.md)."""
