"""A snapshot of a million artifacts out of an indexed repository: copies of it, under names of their own.

Indexing fifty copies of Django takes half an hour; this takes minutes. Every row of the tip is copied inside the
database, with the package's name replaced by the copy's in keys, edges, titles, texts and paths, so that names, edges
and provenance hang together in each copy as they do in the first; and git gets a commit with the same trees.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from evals.bench.servers import BenchParts

# Triggers look at every row of a million, for what holds by construction.
_TABLES = ("artifact", "artifact_derived_from", "snapshot_entry")

_NUMBERED = """
CREATE TEMP TABLE copied_path AS
    SELECT n, p.path_id AS old, nextval('path_path_id_seq') AS new,
           {name} || n || substr(p.path, length({name}) + 1) AS path
    FROM generate_series(1, {copies}) n, path p
    WHERE starts_with(p.path, {name} || '/') AND EXISTS (SELECT FROM snapshot_file f WHERE f.path_id = p.path_id);
CREATE INDEX ON copied_path (old, n);
CREATE TEMP TABLE copied_artifact AS
    SELECT n, a.artifact_pk AS old, nextval('artifact_artifact_pk_seq') AS new
    FROM generate_series(1, {copies}) n, (
        SELECT DISTINCT artifact_pk FROM snapshot_entry e JOIN copied_path p ON p.old = e.home_path_id) a;
CREATE INDEX ON copied_artifact (old, n);
ANALYZE copied_path, copied_artifact;
INSERT INTO path (path_id, path) SELECT new, path FROM copied_path;
"""

_ROWS = (
    """INSERT INTO snapshot_file SELECT f.lineage_id, p.new, f.blob_id, f.parse_id, f.from_ord, f.to_ord,
           f.mode, f.status, f.reason FROM snapshot_file f JOIN copied_path p ON p.old = f.path_id""",
    """INSERT INTO artifact SELECT c.new, a.extractor_version, a.confidence,
           sha256(a.artifact_id || int4send(c.n)), a.body_digest,
           sha256(convert_to({text}, 'UTF8')), a.kind, a.extractor, a.method, {logical_key}, {title}, {text},
           a.body, a.prompt_version, a.model_id FROM artifact a JOIN copied_artifact c ON c.old = a.artifact_pk""",
    """INSERT INTO artifact_derived_from SELECT c.new, d.span_pk, d.role
           FROM artifact_derived_from d JOIN copied_artifact c ON c.old = d.artifact_pk""",
    """INSERT INTO artifact_edge SELECT c.new, a.relation, {target_key}
           FROM artifact_edge a JOIN copied_artifact c ON c.old = a.artifact_pk""",
    """INSERT INTO grounding_location SELECT g.lineage_id, c.new, g.span_pk, p.new, g.n, g.from_ord, g.to_ord
           FROM grounding_location g JOIN copied_artifact c ON c.old = g.artifact_pk
           JOIN copied_path p ON p.old = g.path_id AND p.n = c.n""",
    """INSERT INTO snapshot_entry SELECT e.lineage_id, c.new, p.new, e.from_ord, e.to_ord
           FROM snapshot_entry e JOIN copied_artifact c ON c.old = e.artifact_pk
           JOIN copied_path p ON p.old = e.home_path_id AND p.n = c.n""",
)


def multiply(parts: BenchParts, repo: Path, package: str, copies: int) -> tuple[int, list[str]]:
    """Gives the only lineage `copies` copies of the package that its repository consists of.

    To be called before the lineage is put into the search index, on a database that is thrown away: the triggers
    stay off.

    Returns:
        How many artifacts the tip has now, and the commits, the oldest first: they have the copies too.
    """
    name = f"'{package}'"
    renamed = {
        column: rf"regexp_replace(a.{column}, '\m{package}\M', {name} || c.n, 'g')"
        for column in ("logical_key", "title", "text", "target_key")
    }
    commits = copied_commits(repo, package, copies)
    with parts.database.owner() as connection:
        for table in _TABLES:
            connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        for statement in _NUMBERED.format(name=name, copies=copies).split(";\n"):
            if statement.strip():
                connection.execute(statement)
        for statement in _ROWS:
            connection.execute(statement.format(**renamed))
        for was, sha, tree in commits:
            connection.execute(
                """UPDATE snapshot SET tree = %s FROM commit_ref c
                   WHERE c.commit_id = snapshot.commit_id AND c.sha = %s""",
                (tree, was),
            )
            connection.execute("UPDATE commit_ref SET sha = %s WHERE sha = %s", (sha, was))
        count = "SELECT count(*) FROM snapshot_entry WHERE to_ord = 2147483647"
        artifacts = int(connection.execute(count).fetchone()[0])
        connection.execute("UPDATE snapshot SET artifacts = %s", (artifacts,))
    with parts.database.owner() as connection:
        connection.autocommit = True
        connection.execute("VACUUM (ANALYZE)")
    return artifacts, [sha for _, sha, _ in commits]


def copied_commits(repo: Path, package: str, copies: int) -> list[tuple[str, str, str]]:
    """Rewrites the commits of a repository so that each has the package as often, under those names.

    The trees are shared, so this is one small tree a commit.

    Returns:
        Commit before, commit now, its tree; the oldest first.
    """

    def git(*arguments: str, text: str | None = None) -> str:
        identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
        command = ["git", *identity, *arguments]
        done = subprocess.run(command, cwd=repo, input=text, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    made: list[tuple[str, str, str]] = []
    for commit in git("rev-list", "--reverse", "HEAD").split():
        tree = git("rev-parse", f"{commit}:{package}")
        names = [package, *(f"{package}{n}" for n in range(1, copies + 1))]
        whole = git("mktree", text="".join(f"040000 tree {tree}\t{name}\n" for name in names))
        parent = ["-p", made[-1][1]] if made else []
        made.append((commit, git("commit-tree", whole, "-m", "copies", *parent), whole))
    git("update-ref", "HEAD", made[-1][1])
    return made
