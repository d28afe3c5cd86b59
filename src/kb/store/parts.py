"""What a use case is given: the database, and the folder that kb keeps its own things in."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from kb.store.database import Database


class Parts(Protocol):
    """Built by `kb.bootstrap`; use cases take it instead of reading any setting themselves."""

    @property
    def database(self) -> Database:
        """The database, migrated and of this version's schema."""
        ...

    @property
    def home(self) -> Path:
        """The data home: mirrors of remote repositories, the embedded server."""
        ...
