"""What tells two models of one name apart: their files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

_DIGITS = 8
_ENDING = re.compile(rf"@[0-9a-f]{{{_DIGITS}}}")


def with_content(name: str, folder: Path, files: Iterable[Path]) -> str:
    """The model's name with the beginning of the SHA-256 of its files: `name@0123abcd`.

    Args:
        name: what the model is called.
        folder: where the files lie; it is not part of the digest.
        files: those of them that its vectors depend on, in whatever order.

    Raises:
        OSError: one of them cannot be read.
    """
    whole = hashlib.sha256()
    for path in sorted(files):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{path.relative_to(folder).as_posix()}\0{digest}\n".encode("utf-8", "surrogateescape"))
    return f"{name}@{whole.hexdigest()[:_DIGITS]}"


def names_of(model_id: str) -> tuple[str, ...]:
    """What a model may be called by: its name as in the id, and without the digest of its files."""
    name = model_id.partition(":")[2]
    found = _ENDING.search(name, max(0, len(name) - _DIGITS - 1))
    return (name,) if found is None else (name, name[: found.start()])
