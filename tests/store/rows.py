"""Rows for tests of the schema itself, written with SQL of their own, not with kb's writers."""

from __future__ import annotations

import hashlib
from typing import Any

import psycopg

Connection = psycopg.Connection[Any]

ARTIFACT_COLUMNS = (
    "artifact_id, body_digest, text_digest, kind, extractor, extractor_version,"
    " method, confidence, logical_key, title, text, body"
)


def digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def artifact_values(name: str) -> tuple[Any, ...]:
    return (
        *(digest(f"{part} of {name}") for part in ("id", "body", "text")),
        *("symbol", "symbols", 1, "deterministic", 100, f"symbol:{name}", name, f"def {name}()", "{}"),
    )


def insert_artifact(connection: Connection, name: str) -> int:
    """An artifact, and nothing that grounds it."""
    return _key(
        connection,
        f"INSERT INTO public.artifact ({ARTIFACT_COLUMNS})"
        f" VALUES ({', '.join(['%s'] * 12)}) RETURNING artifact_pk",
        artifact_values(name),
    )


def insert_span(connection: Connection, name: str) -> int:
    return _key(
        connection,
        "INSERT INTO code_span (span_id, fingerprint, language, kind, symbol_path, normalization_version)"
        " VALUES (%s, %s, 'python', 'function', %s, 1) RETURNING span_pk",
        (digest(name), digest(f"tree of {name}"), name),
    )


def ground(connection: Connection, artifact: int, span: int, role: str = "definition") -> None:
    connection.execute(
        "INSERT INTO public.artifact_derived_from (artifact_pk, span_pk, role) VALUES (%s, %s, %s)",
        (artifact, span, role),
    )


def insert_grounded(connection: Connection, name: str, *spans: str) -> int:
    """An artifact that stands on new spans of these names."""
    artifact = insert_artifact(connection, name)
    for span in spans:
        ground(connection, artifact, insert_span(connection, span))
    connection.commit()
    return artifact


def insert_parse(connection: Connection, name: str) -> int:
    blob = _key(
        connection,
        "INSERT INTO blob (oid, size) VALUES (%s, 1) RETURNING blob_id",
        (hashlib.sha1(name.encode(), usedforsecurity=False).digest(),),
    )
    return _key(
        connection,
        "INSERT INTO parse (blob_id, dialect, parser_version) VALUES (%s, 'python', '1') RETURNING parse_id",
        (blob,),
    )


def ungrounded(connection: Connection) -> int:
    """How many artifacts stand on nothing."""
    return _key(
        connection,
        "SELECT count(*) FROM public.artifact a WHERE NOT EXISTS ("
        " SELECT FROM public.artifact_derived_from d JOIN public.code_span USING (span_pk)"
        " WHERE d.artifact_pk = a.artifact_pk)",
        (),
    )


def _key(connection: Connection, statement: str, values: tuple[Any, ...]) -> int:
    row = connection.execute(statement, values).fetchone()  # type: ignore[arg-type]
    assert row is not None
    return int(row[0])
