"""Repositories, recipes, commits and the snapshots that exist of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from kb.errors import NotFoundError, UsageError
from kb.model.commits import CommitInfo


@dataclass(frozen=True, slots=True)
class RepositoryRow:
    """A repository that kb knows."""

    repository_id: int
    name: str
    location: str
    is_remote: bool


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """A sealed snapshot, with the counts it was sealed with."""

    snapshot_id: int
    lineage_id: int
    ordinal: int
    repository_id: int
    repository: str
    recipe_id: int
    sha: str | None
    """None for a working tree."""
    tree: str
    sealed_at: datetime
    files: int
    parsed: int
    gap_files: int
    no_language: int
    excluded: int
    spans: int
    artifacts: int
    gaps: int

    @property
    def label(self) -> str:
        """The commit's sha, or `worktree:<tree>`."""
        return self.sha if self.sha is not None else f"worktree:{self.tree}"


_SNAPSHOTS = """
    SELECT s.snapshot_id, s.lineage_id, s.ordinal, s.repository_id, r.name, s.recipe_id,
           c.sha, s.tree, s.sealed_at, s.files, s.parsed, s.gap_files,
           s.no_language, s.excluded, s.spans, s.artifacts, s.gaps
    FROM snapshot s JOIN repository r USING (repository_id) LEFT JOIN commit_ref c USING (commit_id)
"""


def put_repository(
    connection: psycopg.Connection[Any],
    location: str,
    default_name: str,
    *,
    is_remote: bool,
    name: str | None = None,
) -> RepositoryRow:
    """The repository at `location`, registered on first sight under a name that is unique.

    A taken default name gets `-2`, `-3`...; a name that was asked for and is taken, or is none, is a UsageError.
    """
    if name is not None:
        _check_name(name)
    with connection.transaction():
        # One registration at a time: names are handed out by looking at those that exist.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('kb.repository'))")
        known = find_repository(connection, location=location)
        if known is not None:
            if name is not None and name != known.name:
                raise UsageError(
                    f"this repository is already known as {known.name!r}",
                    hint=f"rename it first: kb repo rename {known.name} {name}",
                )
            return known
        chosen = _free_name(connection, default_name, name)
        row = connection.execute(
            """INSERT INTO repository (name, location, is_remote) VALUES (%s, %s, %s)
               RETURNING repository_id""",
            (chosen, location, is_remote),
        ).fetchone()
        assert row is not None
        return RepositoryRow(int(row[0]), chosen, location, is_remote)


def _check_name(name: str) -> None:
    """A name can be written on a command line and shown on one line.

    Raises:
        UsageError: it cannot.
    """
    if not name or name != name.strip() or name.startswith("-") or not name.isprintable() or len(name) > 200:
        raise UsageError(
            f"{name[:200]!r} is no name for a repository",
            hint="a name has 1 to 200 visible characters, no blanks at its ends, and does not begin with '-'",
        )


def _presentable(name: str) -> str:
    """A folder's name as a repository's: what `_check_name` would refuse is replaced."""
    visible = "".join(char if char.isprintable() else "_" for char in name).strip().lstrip("-")[:190].strip()
    return visible or "repository"


def _free_name(connection: psycopg.Connection[Any], default_name: str, name: str | None) -> str:
    taken = {str(row[0]) for row in connection.execute("SELECT name FROM repository")}
    if name is not None:
        if name in taken:
            raise UsageError(f"another repository is named {name!r}", hint="choose another --name")
        return name
    wanted = _presentable(default_name)
    chosen, number = wanted, 2
    while chosen in taken:
        chosen, number = f"{wanted}-{number}", number + 1
    return chosen


def find_repository(
    connection: psycopg.Connection[Any], *, name: str | None = None, location: str | None = None
) -> RepositoryRow | None:
    """The repository of that name, or else at that location."""
    row = connection.execute(
        """SELECT repository_id, name, location, is_remote FROM repository
           WHERE name = %s OR location = %s ORDER BY name = %s DESC LIMIT 1""",
        (name, location, name),
    ).fetchone()
    return None if row is None else RepositoryRow(*row)


def repositories(connection: psycopg.Connection[Any]) -> list[RepositoryRow]:
    """All repositories, by name."""
    rows = connection.execute(
        "SELECT repository_id, name, location, is_remote FROM repository ORDER BY name"
    ).fetchall()
    return [RepositoryRow(*row) for row in rows]


def rename_repository(connection: psycopg.Connection[Any], old: str, new: str) -> None:
    """Gives a repository another name.

    Raises:
        NotFoundError: there is no repository `old`.
        UsageError: the name `new` is taken, or is none.
    """
    _check_name(new)
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('kb.repository'))")
        if find_repository(connection, name=old) is None:
            raise NotFoundError(f"no repository is named {old!r}", hint="see: kb repo list")
        if old != new and find_repository(connection, name=new) is not None:
            raise UsageError(f"another repository is named {new!r}")
        connection.execute("UPDATE repository SET name = %s WHERE name = %s", (new, old))


def put_recipe(connection: psycopg.Connection[Any], digest: bytes, settings: Mapping[str, Any]) -> int:
    """The id of the recipe with that digest, stored on first use."""
    with connection.transaction():
        connection.execute(
            "INSERT INTO recipe (digest, settings) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            (digest, Jsonb(dict(settings))),
        )
        row = connection.execute("SELECT recipe_id FROM recipe WHERE digest = %s", (digest,)).fetchone()
    assert row is not None
    return int(row[0])


def put_commit(
    connection: psycopg.Connection[Any],
    repository_id: int,
    commit: CommitInfo,
) -> int:
    """The id of a commit of a repository, stored on first sight. Runs in the caller's transaction."""
    connection.execute(
        """INSERT INTO commit_ref (repository_id, sha, tree, parents, committed_at, subject)
           VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING""",
        (
            repository_id,
            commit.sha,
            commit.tree,
            list(commit.parents),
            commit.committed_at,
            commit.subject,
        ),
    )
    row = connection.execute(
        "SELECT commit_id FROM commit_ref WHERE repository_id = %s AND sha = %s",
        (repository_id, commit.sha),
    ).fetchone()
    assert row is not None
    return int(row[0])


def snapshots(
    connection: psycopg.Connection[Any],
    repository_id: int | None = None,
    *,
    sha: str | None = None,
    recipe_id: int | None = None,
) -> list[SnapshotRow]:
    """The sealed snapshots that fit, the newest seal first."""
    rows = connection.execute(
        _SNAPSHOTS
        + """WHERE (%(repository)s::int8 IS NULL OR s.repository_id = %(repository)s)
              AND (%(sha)s::text IS NULL OR c.sha = %(sha)s)
              AND (%(recipe)s::int8 IS NULL OR s.recipe_id = %(recipe)s)
             ORDER BY s.sealed_at DESC, s.snapshot_id DESC""",
        {
            "repository": repository_id,
            "sha": sha,
            "recipe": recipe_id,
        },
    ).fetchall()
    return [SnapshotRow(*row) for row in rows]


def snapshot_by_id(connection: psycopg.Connection[Any], snapshot_id: int) -> SnapshotRow | None:
    """That very snapshot; None where it is gone."""
    row = connection.execute(
        _SNAPSHOTS + "WHERE s.snapshot_id = %(snapshot)s", {"snapshot": snapshot_id}
    ).fetchone()
    return None if row is None else SnapshotRow(*row)


def worktree_snapshot(
    connection: psycopg.Connection[Any], repository_id: int, recipe_id: int | None, tree: str | None
) -> SnapshotRow | None:
    """The newest snapshot of a repository's work tree; of that very tree or recipe where they are given."""
    row = connection.execute(
        _SNAPSHOTS
        + """WHERE s.repository_id = %(repository)s AND s.commit_id IS NULL
              AND (%(recipe)s::int8 IS NULL OR s.recipe_id = %(recipe)s)
              AND (%(tree)s::text IS NULL OR s.tree = %(tree)s)
             ORDER BY s.snapshot_id DESC LIMIT 1""",
        {"repository": repository_id, "recipe": recipe_id, "tree": tree},
    ).fetchone()
    return None if row is None else SnapshotRow(*row)
