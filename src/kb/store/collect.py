"""Erases rows: a repository's, a lineage's past, and whatever content nothing reaches any more.

Content-addressed rows are shared between repositories, so they go only when no membership row reaches
them. The caller holds the collector's lock (`locks.collecting`): no writer is between insert and seal.
"""

from __future__ import annotations

from typing import Any, LiteralString

import psycopg

from kb.store.facts import FACTLESS
from kb.store.manifest import drop_lineage

_UNREACHED: tuple[tuple[LiteralString, LiteralString], ...] = (
    (
        "search_document",
        """DELETE FROM search_document x WHERE NOT EXISTS
           (SELECT FROM snapshot_entry e
            WHERE e.lineage_id = x.lineage_id AND e.artifact_pk = x.artifact_pk)""",
    ),
    (
        "artifact_edge",
        """DELETE FROM artifact_edge x WHERE NOT EXISTS
           (SELECT FROM snapshot_entry e WHERE e.artifact_pk = x.artifact_pk)""",
    ),
    (
        "artifact_derived_from",
        """DELETE FROM artifact_derived_from x WHERE NOT EXISTS
           (SELECT FROM snapshot_entry e WHERE e.artifact_pk = x.artifact_pk)""",
    ),
    (
        "artifact",
        """DELETE FROM artifact x WHERE NOT EXISTS
           (SELECT FROM snapshot_entry e WHERE e.artifact_pk = x.artifact_pk)""",
    ),
    (
        # A vector stays as long as any artifact has its text: embedding is what costs.
        "artifact_embedding",
        """DELETE FROM artifact_embedding x USING search_text t
           WHERE t.text_pk = x.text_pk AND NOT EXISTS
           (SELECT FROM artifact a WHERE a.text_digest = t.text_digest)""",
    ),
    (
        "search_text",
        """DELETE FROM search_text x
           WHERE NOT EXISTS (SELECT FROM artifact a WHERE a.text_digest = x.text_digest)
             AND NOT EXISTS (SELECT FROM search_document d WHERE d.text_pk = x.text_pk)""",
    ),
    (
        "search_term",
        """DELETE FROM search_term x
           WHERE NOT EXISTS (SELECT FROM search_frequency f WHERE f.term_id = x.term_id)
             AND NOT EXISTS (SELECT FROM search_block b WHERE b.term_id = x.term_id)""",
    ),
    *(
        (
            table,
            f"""DELETE FROM {table} x WHERE NOT EXISTS
                (SELECT FROM snapshot_file f WHERE f.parse_id = x.parse_id)""",
        )
        for table in ("gap", "span_occurrence")
    ),
    # Facts are for linking, and only tips are linked from.
    *((table, f"DELETE FROM {table} x WHERE {FACTLESS}") for table in ("fact_key", "fact", "fact_coverage")),
    (
        "parse",
        """DELETE FROM parse x WHERE NOT EXISTS
           (SELECT FROM snapshot_file f WHERE f.parse_id = x.parse_id)""",
    ),
    (
        "code_span",
        """DELETE FROM code_span x
           WHERE NOT EXISTS (SELECT FROM span_occurrence o WHERE o.span_pk = x.span_pk)
             AND NOT EXISTS (SELECT FROM artifact_derived_from d WHERE d.span_pk = x.span_pk)""",
    ),
    (
        "blob",
        """DELETE FROM blob x WHERE NOT EXISTS
           (SELECT FROM snapshot_file f WHERE f.blob_id = x.blob_id)
           AND NOT EXISTS (SELECT FROM parse p WHERE p.blob_id = x.blob_id)""",
    ),
    (
        "path",
        """DELETE FROM path x
           WHERE NOT EXISTS (SELECT FROM snapshot_file f WHERE f.path_id = x.path_id)
             AND NOT EXISTS (SELECT FROM snapshot_entry e WHERE e.home_path_id = x.path_id)
             AND NOT EXISTS (SELECT FROM grounding_location g WHERE g.path_id = x.path_id)
             AND NOT EXISTS (SELECT FROM lookup l WHERE l.path_id = x.path_id)""",
    ),
    (
        "commit_ref",
        """DELETE FROM commit_ref x WHERE NOT EXISTS
           (SELECT FROM snapshot s WHERE s.commit_id = x.commit_id)""",
    ),
    (
        "recipe",
        """DELETE FROM recipe x WHERE NOT EXISTS (SELECT FROM lineage l WHERE l.recipe_id = x.recipe_id)
           AND NOT EXISTS (SELECT FROM snapshot s WHERE s.recipe_id = x.recipe_id)""",
    ),
)


def remove_repository(connection: psycopg.Connection[Any], repository_id: int) -> None:
    """Erases a repository with everything that only it reaches, in the caller's transaction."""
    lineages = connection.execute(
        "SELECT lineage_id FROM lineage WHERE repository_id = %s", (repository_id,)
    ).fetchall()
    for (lineage_id,) in lineages:
        drop_lineage(connection, int(lineage_id))
    connection.execute("DELETE FROM branch_ref WHERE repository_id = %s", (repository_id,))
    connection.execute("DELETE FROM commit_ref WHERE repository_id = %s", (repository_id,))
    connection.execute("DELETE FROM repository WHERE repository_id = %s", (repository_id,))
    collect(connection)


def collect(connection: psycopg.Connection[Any]) -> dict[str, int]:
    """Erases every content row that no membership row reaches; table -> rows, in the caller's transaction."""
    # Statistics may be stale right after a bulk run; every statement here is over whole tables.
    connection.execute("SET LOCAL enable_nestloop = off")
    erased = {table: connection.execute(statement).rowcount for table, statement in _UNREACHED}
    connection.execute("SET LOCAL enable_nestloop = on")
    return erased
