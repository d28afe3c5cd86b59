"""Puts texts into a kb database as a sealed snapshot, for tests and benchmarks of search.

Every document becomes one artifact grounded on one text span of one file, exactly as an extractor's
artifact would be; `commit` seals the next snapshot of the same lineage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import psycopg

OPEN = 2147483647


class Doc(NamedTuple):
    key: str
    text: str
    title: str = ""
    kind: str = "passage"
    path: str = ""


def sha(*parts: str) -> bytes:
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogatepass")).digest()


class Corpus:
    """A lineage under construction: each `commit` seals a snapshot with exactly the given documents."""

    def __init__(self, connection: psycopg.Connection, name: str, *, shared_spans: bool = False) -> None:
        self.connection = connection
        self.shared_spans = shared_spans
        """One span for each file instead of one for each document: for corpora of a million."""
        self.ordinal = -1
        self.files: set[str] = set()
        with connection.transaction():
            self.repository_id = self._one(
                "INSERT INTO repository (name, location, is_remote) VALUES (%s, %s, false) RETURNING repository_id",
                (name, f"/corpus/{name}"),
            )
            self.recipe_id = self._one(
                "INSERT INTO recipe (digest, settings) VALUES (%s, '{}') RETURNING recipe_id", (sha(name),)
            )
            self.lineage_id = self._one(
                "INSERT INTO lineage (repository_id, recipe_id) VALUES (%s, %s) RETURNING lineage_id",
                (self.repository_id, self.recipe_id),
            )

    def _one(self, statement, parameters):
        return self.connection.execute(statement, parameters).fetchone()[0]

    def commit(self, documents: Iterable[Doc]) -> int:
        """Seals the next snapshot; its snapshot_id."""
        self.ordinal += 1
        run = self.connection.execute
        at = {"lineage": self.lineage_id, "ordinal": self.ordinal, "open": OPEN}
        with self.connection.transaction():
            run("DROP TABLE IF EXISTS stage_doc")
            run(
                """CREATE TEMP TABLE stage_doc (no serial, path text, kind text, key text, title text, text text,
                   artifact_id bytea, text_digest bytea, span_id bytea, line int)"""
            )
            lines: dict[str, int] = {}
            with self.connection.cursor().copy(
                "COPY stage_doc (path, kind, key, title, text, artifact_id, text_digest, span_id, line)"
                " FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(["text"] * 5 + ["bytea"] * 3 + ["int4"])
                for doc in documents:
                    path = doc.path or doc.key.replace(" ", "_")[:200]
                    lines[path] = line = lines.get(path, 0) + 1
                    identity = sha(doc.kind, doc.key, doc.title, doc.text)
                    copy.write_row(
                        (path, doc.kind, doc.key, doc.title, doc.text, identity, sha(doc.text),
                         sha("span", path) if self.shared_spans else sha("span", doc.kind, doc.key, doc.text), line)
                    )  # fmt: skip
            run("ANALYZE stage_doc")
            run("INSERT INTO path (path) SELECT DISTINCT path FROM stage_doc ON CONFLICT DO NOTHING")
            run(
                """INSERT INTO blob (oid, size) SELECT DISTINCT substr(sha256(path::bytea), 1, 20), 1
                   FROM stage_doc ON CONFLICT DO NOTHING"""
            )
            run(
                """INSERT INTO parse (blob_id, dialect, parser_version)
                   SELECT DISTINCT b.blob_id, 'text', 'corpus' FROM stage_doc d
                   JOIN blob b ON b.oid = substr(sha256(d.path::bytea), 1, 20) ON CONFLICT DO NOTHING"""
            )
            run(
                """INSERT INTO code_span (span_id, fingerprint, language, kind, symbol_path, normalization_version)
                   SELECT DISTINCT ON (span_id) span_id, span_id, 'text', 'section', '', 1 FROM stage_doc
                   ON CONFLICT DO NOTHING"""
            )
            run(
                """INSERT INTO span_occurrence
                       (parse_id, span_pk, n, start_byte, end_byte, start_line, end_line)
                   SELECT DISTINCT ON (2) ps.parse_id, c.span_pk, 0, 0, 1, d.line, d.line FROM stage_doc d
                   JOIN blob b ON b.oid = substr(sha256(d.path::bytea), 1, 20) JOIN parse ps USING (blob_id)
                   JOIN code_span c USING (span_id) ON CONFLICT DO NOTHING"""
            )
            run(
                """INSERT INTO artifact (artifact_id, body_digest, text_digest, kind, logical_key, title, text, body,
                       extractor, extractor_version, method, confidence)
                   SELECT DISTINCT ON (artifact_id) artifact_id, artifact_id, text_digest, kind, key, title, text,
                       '{}'::jsonb, 'corpus', 1, 'deterministic', 100 FROM stage_doc ON CONFLICT DO NOTHING"""
            )
            run(
                """INSERT INTO artifact_derived_from (artifact_pk, span_pk, role)
                   SELECT DISTINCT a.artifact_pk, c.span_pk, 'source' FROM stage_doc d
                   JOIN artifact a USING (artifact_id) JOIN code_span c USING (span_id) ON CONFLICT DO NOTHING"""
            )
            run(
                """UPDATE snapshot_entry e SET to_ord = %(ordinal)s WHERE lineage_id = %(lineage)s
                   AND to_ord = %(open)s AND NOT EXISTS (
                       SELECT FROM stage_doc d JOIN artifact a USING (artifact_id)
                       WHERE a.artifact_pk = e.artifact_pk)""",
                at,
            )
            run(
                """UPDATE grounding_location g SET to_ord = %(ordinal)s WHERE lineage_id = %(lineage)s
                   AND to_ord = %(open)s AND NOT EXISTS (
                       SELECT FROM stage_doc d JOIN artifact a USING (artifact_id)
                       WHERE a.artifact_pk = g.artifact_pk)""",
                at,
            )
            run(
                """INSERT INTO snapshot_entry (lineage_id, artifact_pk, home_path_id, from_ord, to_ord)
                   SELECT DISTINCT %(lineage)s::int8, a.artifact_pk, p.path_id, %(ordinal)s::int4, %(open)s::int4
                   FROM stage_doc d JOIN artifact a USING (artifact_id) JOIN path p USING (path)
                   ON CONFLICT DO NOTHING""",
                at,
            )
            run(
                """INSERT INTO grounding_location (lineage_id, artifact_pk, span_pk, path_id, n, from_ord, to_ord)
                   SELECT DISTINCT %(lineage)s::int8, a.artifact_pk, c.span_pk, p.path_id, 0,
                       %(ordinal)s::int4, %(open)s::int4
                   FROM stage_doc d JOIN artifact a USING (artifact_id) JOIN path p USING (path)
                   JOIN code_span c USING (span_id) ON CONFLICT DO NOTHING""",
                at,
            )
            run(
                """UPDATE snapshot_file f SET to_ord = %(ordinal)s FROM path p
                   WHERE p.path_id = f.path_id AND f.lineage_id = %(lineage)s AND f.to_ord = %(open)s
                     AND NOT EXISTS (SELECT FROM stage_doc d WHERE d.path = p.path)""",
                at,
            )
            run(
                """INSERT INTO snapshot_file (lineage_id, path_id, blob_id, parse_id, from_ord, to_ord, mode, status)
                   SELECT DISTINCT %(lineage)s::int8, p.path_id, b.blob_id, ps.parse_id, %(ordinal)s::int4,
                       %(open)s::int4, 33188, 'parsed'
                   FROM stage_doc d JOIN path p USING (path)
                   JOIN blob b ON b.oid = substr(sha256(d.path::bytea), 1, 20) JOIN parse ps USING (blob_id)
                   ON CONFLICT DO NOTHING""",
                at,
            )
            tree = sha(str(self.lineage_id), str(self.ordinal)).hex()[:40]
            commit_id = self._one(
                """INSERT INTO commit_ref (repository_id, sha, tree, parents, committed_at, subject)
                   VALUES (%s, %s, %s, '{}', now(), 'corpus') RETURNING commit_id""",
                (self.repository_id, tree, tree),
            )
            snapshot_id = self._one(
                """INSERT INTO snapshot (lineage_id, ordinal, repository_id, recipe_id, commit_id, tree, files,
                       parsed, gap_files, no_language, excluded, spans, artifacts, gaps)
                   SELECT %s, %s, %s, %s, %s, %s, 0, 0, 0, 0, 0, 0, count(*), 0 FROM stage_doc
                   RETURNING snapshot_id""",
                (self.lineage_id, self.ordinal, self.repository_id, self.recipe_id, commit_id, tree),
            )
            run("UPDATE lineage SET tip_ordinal = %(ordinal)s WHERE lineage_id = %(lineage)s", at)
        return snapshot_id
