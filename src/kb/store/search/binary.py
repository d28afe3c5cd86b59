"""What goes to PostgreSQL in bulk: the binary COPY form of rows whose vectors come from numpy, without a Python loop
over their elements."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, LiteralString

import numpy as np
import numpy.typing as npt
import psycopg

SPARSE_DIMENSIONS = 1_000_000_000
"""pgvector's largest: a term's number is its dimension, and vectors only compare when these agree."""

_SIGNATURE = b"PGCOPY\n\xff\r\n\x00" + struct.pack(">ii", 0, 0)
_INT8 = struct.Struct(">iq")
_INT4 = struct.Struct(">ii")
_INT2 = struct.Struct(">ih")
_LENGTH = struct.Struct(">i")
_SPARSE = struct.Struct(">iii")
_HALF = struct.Struct(">HH")
_FLUSH_BYTES = 1 << 20


def int8(value: int) -> bytes:
    """A bigint field."""
    return _INT8.pack(8, value)


def int4(value: int) -> bytes:
    """An integer field."""
    return _INT4.pack(4, value)


def int2(value: int) -> bytes:
    """A smallint field."""
    return _INT2.pack(2, value)


def raw(value: bytes) -> bytes:
    """A bytea or text field, or any field whose bytes are at hand."""
    return _LENGTH.pack(len(value)) + value


def sparse_vector(indices: bytes, values: bytes) -> bytes:
    """A sparsevec field: ascending 0-based indices as big-endian int4, values as big-endian float4."""
    return raw(_SPARSE.pack(SPARSE_DIMENSIONS, len(indices) // 4, 0) + indices + values)


def half_vector(values: bytes) -> bytes:
    """A halfvec field of big-endian float2 values."""
    return raw(_HALF.pack(len(values) // 2, 0) + values)


def integers(values: npt.NDArray[np.int64] | Sequence[int]) -> str:
    """An array of integers as a parameter: the driver takes a microsecond for each element of a list."""
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    return "{" + ",".join(map(str, listed)) + "}"


def copy_rows(
    connection: psycopg.Connection[Any], statement: LiteralString, rows: Iterable[Sequence[bytes]]
) -> int:
    """Sends rows of encoded fields through `COPY ... FROM STDIN (FORMAT BINARY)`; how many."""
    count = 0
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        pending = [_SIGNATURE]
        size = 0
        for row in rows:
            encoded = len(row).to_bytes(2, "big") + b"".join(row)
            pending.append(encoded)
            size += len(encoded)
            count += 1
            if size >= _FLUSH_BYTES:
                copy.write(b"".join(pending))
                pending, size = [], 0
        pending.append(b"\xff\xff")
        copy.write(b"".join(pending))
    return count
