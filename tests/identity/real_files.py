"""Prints one digest per real file, of everything its spans are; for deciding about grammar upgrades.

The files are those of distributions that uv.lock pins. To regenerate:

    python tests/identity/real_files.py > tests/identity/real_files.json
"""

from __future__ import annotations

import hashlib
import json
import sys
from importlib.metadata import distribution
from pathlib import Path

from kb.structure.reader import read_blob

DISTRIBUTIONS = ("alembic", "click", "rich", "starlette", "sqlalchemy")
MOST = 300


def digest(source: bytes) -> str:
    """16 hex digits over kind, symbol path, n, id and lines of every span, and the gaps."""
    blob = read_blob("real", source, "python", ())
    hashed = hashlib.sha256(repr(blob.gaps).encode())
    for item in blob.occurrences:
        hashed.update(
            repr((item.span.kind, item.span.symbol_path, item.n, item.start_line, item.end_line)).encode()
        )
        hashed.update(item.span.span_id)
    return hashed.hexdigest()[:16]


def digests() -> dict[str, dict[str, str]]:
    """By distribution and version, then by file."""
    found: dict[str, dict[str, str]] = {}
    for name in DISTRIBUTIONS:
        installed = distribution(name)
        files = sorted(str(file) for file in installed.files or () if str(file).endswith(".py"))
        files = files[: MOST - sum(map(len, found.values()))]
        found[f"{name} {installed.version}"] = {
            file: digest(Path(str(installed.locate_file(file))).read_bytes()) for file in files
        }
    return found


if __name__ == "__main__":
    json.dump(digests(), sys.stdout, indent=0)
    sys.stdout.write("\n")
