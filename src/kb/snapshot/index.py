"""The use case `kb index`: a commit of a repository becomes a sealed snapshot."""

from __future__ import annotations

import os
import time

from kb.config import repository_roots
from kb.errors import NotFoundError, UsageError
from kb.extract.registry import load_extractors
from kb.git.mirror import claim, mirror_path
from kb.git.overlays import worktree_objects
from kb.git.repository import Repository
from kb.git.urls import parse_url
from kb.model.commits import CommitInfo
from kb.snapshot import faults
from kb.snapshot.build import build
from kb.snapshot.extend import extend
from kb.snapshot.recipe import Recipe
from kb.snapshot.repositories import no_stray_mirror
from kb.snapshot.requests import GapRow, IndexReport, IndexRequest, Progress, silent
from kb.snapshot.run import Run
from kb.snapshot.scope import scope_at
from kb.store import gaps, locks, manifest
from kb.store.catalog import SnapshotRow, put_recipe, put_repository
from kb.store.database import Connection
from kb.store.facts import drop_past_facts
from kb.store.parts import Parts
from kb.store.search.index import catch_up

_MOST_LOOKED_AT = 20_000
"""Files of a work tree that are looked at for uncommitted changes; about 15 microseconds each."""
_NOT_LOOKED_AT = (
    f"more than {_MOST_LOOKED_AT:,} files: uncommitted changes in the working tree were not looked for"
)


def index_repository(parts: Parts, request: IndexRequest, progress: Progress = silent) -> IndexReport:
    """Seals a snapshot of the commit that the request names, or finds it sealed already.

    Raises:
        RepositoryError, NotFoundError: the repository or the commit cannot be read.
        DatabaseError: the database cannot be written.
        IntegrityError: an invariant does not hold; nothing was sealed.
    """
    started = time.monotonic()
    with no_stray_mirror(parts, request.repo), parts.database.writer() as connection:
        connection.autocommit = True  # every transaction is explicit
        with locks.writing(connection):
            # Also the objects of a work tree are written while no collector runs.
            repository, commit = _open(parts, request)
            faults.point("opened")
            recipe, notices = recipe_for(repository, commit, request)
            run = _begin(parts, connection, request, (repository, commit, recipe))
            run.progress = progress
            sealed = run.sealed()
            already = sealed is not None and not request.full
            if sealed is not None and already:
                snapshot, incremental = sealed, False
            else:
                snapshot, incremental = _make(run, full=request.full, replacing=sealed is not None)
                with locks.alone(connection) as alone:
                    if alone:  # else the next run does it, or `kb gc`
                        drop_past_facts(connection, snapshot.lineage_id, snapshot.ordinal)
            gap_rows = gaps.gaps_at(connection, snapshot.lineage_id, snapshot.ordinal)
            dirty = _not_indexed(repository, commit, snapshot, request)
            if request.search:
                _make_searchable(connection, snapshot, progress)
    return IndexReport(
        repository=run.row.name,
        sha=snapshot.label,
        already_sealed=already,
        files=snapshot.files,
        parsed=snapshot.parsed,
        gap_files=snapshot.gap_files,
        no_language=snapshot.no_language,
        excluded=snapshot.excluded,
        spans=snapshot.spans,
        artifacts=snapshot.artifacts,
        gap_count=snapshot.gaps,
        gaps=[GapRow(*gap) for gap in gap_rows],
        dirty=dirty or [],
        seconds=round(time.monotonic() - started, 1),
        notices=notices if dirty is not None else [*notices, _NOT_LOOKED_AT],
        incremental=incremental,
        parsed_blobs=run.parsed_blobs,
        linked_files=run.linked_files,
        linked_homes=run.linked_homes,
    )


def _make_searchable(connection: Connection, snapshot: SnapshotRow, progress: Progress) -> None:
    """The words of a sealed snapshot; whatever happens here, what was sealed stands."""
    progress("search", 0, 1)
    catch_up(connection, snapshot.lineage_id)
    progress("search", 1, 1)


def _open(parts: Parts, request: IndexRequest) -> tuple[Repository, CommitInfo]:
    """The repository, and the commit asked for: for a work tree HEAD with the work tree's own tree.

    Where kb keeps objects of work trees they are shown too: the lineage's tip may be one of those.

    Raises:
        UsageError: a work tree is of HEAD, and another commit was asked for.
    """
    if request.worktree and request.commitish != "HEAD":
        raise UsageError("a working tree stands on HEAD: --worktree and --sha exclude each other")
    try:
        repository = Repository.open(request.repo, parts.home, fetch=request.fetch)
    except NotFoundError:
        # Fetched by the caller, and swept by a collector before this run held the writers' lock.
        repository = Repository.open(request.repo, parts.home)
    commit = repository.resolve(request.commitish)
    objects = worktree_objects(parts.home, repository.location)
    if request.worktree:
        commit = commit._replace(tree=repository.write_worktree_tree(objects))
    return (repository.with_overlay(objects) if objects.is_dir() else repository), commit


def _begin(
    parts: Parts,
    connection: Connection,
    request: IndexRequest,
    subject: tuple[Repository, CommitInfo, Recipe],
) -> Run:
    """Registers repository and recipe, and gathers what the steps share."""
    repository, commit, recipe = subject
    row = put_repository(
        connection,
        repository.location,
        repository.default_name,
        is_remote=repository.is_remote,
        name=request.name,
    )
    if repository.is_remote:
        claim(mirror_path(parts.home, parse_url(repository.location)))
    recipe_id = put_recipe(connection, recipe.digest, recipe.settings)
    faults.point("registered")
    return Run(
        database=parts.database,
        connection=connection,
        repository=repository,
        row=row,
        commit=commit,
        recipe=recipe,
        recipe_id=recipe_id,
        jobs=request.jobs or os.cpu_count() or 1,
        worktree=request.worktree,
    )


def _make(run: Run, *, full: bool, replacing: bool) -> tuple[SnapshotRow, bool]:
    """The snapshot, and whether it was made from the difference to the lineage's tip."""
    manifest.drop_orphans(run.connection, run.row.repository_id)
    if not full:
        extended = extend(run)
        if extended is not None:
            return extended, True
    return build(run, replacing=replacing), False


def recipe_for(repository: Repository, commit: CommitInfo, request: IndexRequest) -> tuple[Recipe, list[str]]:
    """The recipe of a request at a commit, and what there is to say about its settings."""
    scope, roots, notices = scope_at(repository, commit, request.includes, request.excludes)
    recipe = Recipe(
        extractors=load_extractors(),
        scope=scope,
        roots=_flag_roots(request.roots) or roots,
        max_blob_bytes=request.max_blob_bytes,
    )
    return recipe, notices


def _flag_roots(roots: tuple[str, ...]) -> tuple[str, ...]:
    """The caller's roots as paths from the top of the repository.

    Raises:
        UsageError: one leads out of it.
    """
    clean, notices = repository_roots(roots)
    if notices:
        raise UsageError(notices[0], hint="a root is a folder of the repository, such as src")
    return clean


def _not_indexed(
    repository: Repository, commit: CommitInfo, snapshot: SnapshotRow, request: IndexRequest
) -> list[str] | None:
    """Changes of the working tree that the commit does not have, where it is checked out at it.

    None where they were not looked for: that takes a look at every file, which a commit must not cost
    in a large repository.
    """
    if not request.report_dirty or request.worktree:
        return []
    if repository.is_bare or repository.head().sha != commit.sha:
        return []
    if snapshot.files + snapshot.excluded > _MOST_LOOKED_AT:
        return None
    return [f"{file.what}: {file.path}" for file in repository.dirty()]
