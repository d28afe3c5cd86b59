"""Vectors, keyed by model and text: stored once for ever, searched exactly or through HNSW."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql

from kb.errors import UsageError
from kb.store.search.binary import copy_rows, half_vector, int4, int8, integers
from kb.store.search.members import Bits
from kb.store.search.reading import SearchView
from kb.store.search.steering import steered

Vectors = npt.NDArray[np.float32]

INDEX_FROM = 20_000
"""Vectors of a model from which on it gets an HNSW index; below, the exact scan is fast enough."""


_VECTOR_BYTES = 2
_NODE_BYTES = 1300
"""What a vector takes beside its values while its graph is built, with 24 neighbours."""
_MOST_MEMORY = 2048
"""Megabytes. A graph that does not fit is built five times as slowly (DESIGN 8)."""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """An embedding model that has vectors here."""

    model_pk: int
    model_id: str
    dimensions: int
    locator: str | None
    """What its provider opens it by (a folder, a name); None for the provider's default."""

    @property
    def provider(self) -> str:
        """Name of the adapter."""
        return self.model_id.partition(":")[0]


def put_model(
    connection: psycopg.Connection[Any], model_id: str, dimensions: int, locator: str | None
) -> ModelRow:
    """The model's row, stored on first use.

    Raises:
        UsageError: the model is known with another number of dimensions.
    """
    with connection.transaction():
        connection.execute(
            """INSERT INTO embedding_model (model_id, dimensions, locator) VALUES (%s, %s, %s)
               ON CONFLICT DO NOTHING""",
            (model_id, dimensions, locator),
        )
        known = next(model for model in models(connection) if model.model_id == model_id)
    if known.dimensions != dimensions:
        raise UsageError(
            f"model {model_id} gave {dimensions} dimensions, and {known.dimensions} when it was first used",
            hint="another model answers under this name now: use a name of its own for it (--model)",
        )
    return known


def models(connection: psycopg.Connection[Any]) -> list[ModelRow]:
    """Every model that has been used, the oldest first."""
    rows = connection.execute(
        "SELECT model_pk, model_id, dimensions, locator FROM embedding_model ORDER BY model_pk"
    ).fetchall()
    return [ModelRow(*row) for row in rows]


def snapshot_models(connection: psycopg.Connection[Any], snapshot_id: int) -> list[ModelRow]:
    """The models that a snapshot is embedded with, the most recent first."""
    rows = connection.execute(
        """SELECT m.model_pk, m.model_id, m.dimensions, m.locator
           FROM snapshot_embedding s JOIN embedding_model m USING (model_pk)
           WHERE s.snapshot_id = %s ORDER BY s.embedded_at DESC, m.model_pk DESC""",
        (snapshot_id,),
    ).fetchall()
    return [ModelRow(*row) for row in rows]


def mark_embedded(connection: psycopg.Connection[Any], snapshot_id: int, model: ModelRow) -> None:
    """Says that every text of the snapshot has its vector; the newest mark wins where no model is named."""
    with connection.transaction():
        connection.execute(
            "DELETE FROM snapshot_embedding WHERE snapshot_id = %s AND model_pk = %s",
            (snapshot_id, model.model_pk),
        )
        connection.execute(
            "INSERT INTO snapshot_embedding (snapshot_id, model_pk, embedded_at) VALUES (%s, %s, clock_timestamp())",
            (snapshot_id, model.model_pk),
        )


_MISSING = """
    FROM snapshot_entry e
    JOIN search_document d ON d.artifact_pk = e.artifact_pk AND d.lineage_id = e.lineage_id
    WHERE e.lineage_id = %(lineage)s AND e.from_ord <= %(ordinal)s AND e.to_ord > %(ordinal)s
      AND NOT EXISTS (SELECT FROM artifact_embedding v
                      WHERE v.model_pk = %(model)s AND v.text_pk = d.text_pk)
"""


def count_missing(connection: psycopg.Connection[Any], lineage_id: int, ordinal: int, model: ModelRow) -> int:
    """How many texts of the snapshot have no vector of the model yet."""
    row = connection.execute(
        f"SELECT count(DISTINCT d.text_pk) {_MISSING}",
        {"lineage": lineage_id, "ordinal": ordinal, "model": model.model_pk},
    ).fetchone()
    return 0 if row is None else int(row[0])


def missing_texts(
    connection: psycopg.Connection[Any], lineage_id: int, ordinal: int, model: ModelRow, batch: int
) -> Iterator[list[tuple[int, str]]]:
    """The texts of the snapshot without a vector, in batches that the caller stores before the next.

    Sorted by number and resumed after the last one: each batch is a short read of its own.
    """
    after = 0
    with connection.transaction():
        connection.execute(
            "CREATE TEMP TABLE IF NOT EXISTS stage_missing_text (text_pk int8 PRIMARY KEY, artifact_pk int8)"
        )
        connection.execute("TRUNCATE stage_missing_text")
        connection.execute(
            f"INSERT INTO stage_missing_text SELECT d.text_pk, min(d.artifact_pk) {_MISSING} GROUP BY d.text_pk",
            {"lineage": lineage_id, "ordinal": ordinal, "model": model.model_pk},
        )
    while True:
        rows = connection.execute(
            """SELECT m.text_pk, a.text FROM stage_missing_text m JOIN artifact a USING (artifact_pk)
               WHERE m.text_pk > %s ORDER BY m.text_pk LIMIT %s""",
            (after, batch),
        ).fetchall()
        connection.commit()
        if not rows:
            return
        yield [(int(pk), str(text)) for pk, text in rows]
        after = int(rows[-1][0])


def put_vectors(
    connection: psycopg.Connection[Any], model: ModelRow, text_pks: Sequence[int], vectors: Vectors
) -> None:
    """Stores one vector for each text (rows of `vectors`) in one short transaction; idempotent."""
    values = np.ascontiguousarray(vectors, dtype=">f2").view(np.uint8).reshape(len(text_pks), -1)
    with connection.transaction():
        connection.execute(
            """CREATE TEMP TABLE IF NOT EXISTS stage_embedding (text_pk int8, model_pk int4, embedding halfvec)
               ON COMMIT DELETE ROWS"""
        )
        copy_rows(
            connection,
            "COPY stage_embedding FROM STDIN (FORMAT BINARY)",
            (
                (int8(pk), int4(model.model_pk), half_vector(row.tobytes()))
                for pk, row in zip(text_pks, values, strict=True)
            ),
        )
        connection.execute(
            """INSERT INTO artifact_embedding (text_pk, model_pk, embedding)
               SELECT text_pk, model_pk, embedding FROM stage_embedding ORDER BY text_pk ON CONFLICT DO NOTHING"""
        )


def ensure_index(connection: psycopg.Connection[Any], model: ModelRow) -> bool:
    """Gives a model with many vectors its HNSW index; whether it has one now."""
    row = connection.execute(
        "SELECT count(*) FROM artifact_embedding WHERE model_pk = %s", (model.model_pk,)
    ).fetchone()
    held = 0 if row is None else int(row[0])
    if held < INDEX_FROM:
        return has_index(connection, model)
    graph = held * (_VECTOR_BYTES * model.dimensions + _NODE_BYTES) >> 20
    with connection.transaction():
        connection.execute(
            "SELECT set_config('maintenance_work_mem', %s, true)", (f"{min(max(graph, 64), _MOST_MEMORY)}MB",)
        )
        connection.execute("SELECT ensure_vector_index(%s)", (model.model_pk,))
    return True


def has_index(connection: psycopg.Connection[Any], model: ModelRow) -> bool:
    """Whether the model's vectors can be searched through HNSW."""
    row = connection.execute(
        "SELECT to_regclass(%s) IS NOT NULL", (f"public.artifact_embedding_hnsw_{model.model_pk}",)
    ).fetchone()
    return row is not None and bool(row[0])


def nearest(
    connection: psycopg.Connection[Any],
    view: SearchView,
    model: ModelRow,
    vector: Vectors,
    *,
    members: Bits,
    limit: int,
) -> list[tuple[int, float]]:
    """The nearest documents among `members` through HNSW with their inner product, best first.

    The scan goes on until it has found `limit` members. It may end before, where the graph does not lead
    to them: then the answer has fewer.
    """
    with steered(connection):
        rows = connection.execute(
            _nearest_statement(model),
            {
                "vector": _text(vector),
                "lineage": view.lineage_id,
                "handed_out": view.handed_out,
                "members": members.tobytes(),
                "limit": limit,
            },
            prepare=True,
            binary=True,
        ).fetchall()
    return [(int(doc), float(similarity)) for doc, similarity in rows]


def _nearest_statement(model: ModelRow) -> sql.Composed:
    """The model's numbers stand in it, as in its index: only then does the planner see that they fit."""
    distance = sql.SQL("(e.embedding::halfvec({0})) <#> %(vector)s::halfvec({0})").format(
        sql.Literal(model.dimensions)
    )
    return sql.SQL(
        """SELECT doc, -distance FROM (
               SELECT d.doc, {distance} AS distance FROM artifact_embedding e
               CROSS JOIN LATERAL (
                   SELECT doc FROM search_document
                   WHERE text_pk = e.text_pk AND lineage_id = %(lineage)s OFFSET 0) d
               WHERE e.model_pk = {model} AND d.doc < %(handed_out)s
                 AND get_bit(%(members)s::bytea, d.doc) = 1
               ORDER BY {distance} LIMIT %(limit)s) near ORDER BY distance, doc"""
    ).format(distance=distance, model=sql.Literal(model.model_pk))


def similarities(
    connection: psycopg.Connection[Any],
    view: SearchView,
    model: ModelRow,
    vector: Vectors,
    *,
    docs: Sequence[int],
) -> list[tuple[int, float]]:
    """Inner products of the named documents, best first; exact."""
    if not len(docs):
        return []
    with steered(connection):
        rows = connection.execute(
            """SELECT d.doc, -(e.embedding <#> %(vector)s::halfvec) AS similarity
               FROM unnest(%(docs)s::int4[]) AS w (doc)
               JOIN search_document d ON d.lineage_id = %(lineage)s AND d.doc = w.doc
               JOIN artifact_embedding e ON e.model_pk = %(model)s AND e.text_pk = d.text_pk
               ORDER BY 2 DESC, 1""",
            {
                "vector": _text(vector),
                "model": model.model_pk,
                "lineage": view.lineage_id,
                "docs": integers(docs),
            },
            prepare=True,
            binary=True,
        ).fetchall()
    return [(int(doc), float(similarity)) for doc, similarity in rows]


def nearest_texts(
    connection: psycopg.Connection[Any],
    model: ModelRow,
    vector: Vectors,
    *,
    texts: npt.NDArray[np.int64],
    limit: int,
) -> list[tuple[int, float]]:
    """The nearest of the texts with these numbers (rising), with their inner product; exact, reads them all."""
    with steered(connection):
        rows = connection.execute(
            """SELECT text_pk, -(embedding <#> %(vector)s::halfvec) AS similarity FROM artifact_embedding
               WHERE model_pk = %(model)s AND text_pk = ANY(%(texts)s::int8[])
               ORDER BY 2 DESC, 1 LIMIT %(limit)s""",
            {"vector": _text(vector), "model": model.model_pk, "texts": integers(texts), "limit": limit},
            prepare=True,
            binary=True,
        ).fetchall()
    return [(int(text), float(similarity)) for text, similarity in rows]


def of_documents(
    connection: psycopg.Connection[Any], view: SearchView, model: ModelRow, docs: Sequence[int]
) -> dict[int, Vectors]:
    """The vectors of the named documents, for comparing them with each other."""
    rows = connection.execute(
        """SELECT d.doc, halfvec_send(e.embedding) FROM search_document d
           JOIN artifact_embedding e ON e.model_pk = %s AND e.text_pk = d.text_pk
           WHERE d.lineage_id = %s AND d.doc = ANY(%s)""",
        (model.model_pk, view.lineage_id, list(docs)),
    ).fetchall()
    return {int(doc): np.frombuffer(wire, dtype=">f2", offset=4).astype(np.float32) for doc, wire in rows}


def _text(vector: Vectors) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"
