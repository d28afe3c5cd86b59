"""The unit as it is served: one model for the MCP tools, for `--json` and for whatever comes later.

The only module of `kb.model` that needs pydantic; the stations below the faces do not import it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1
"""Raised when a field changes its meaning or goes away; a new optional field does not raise it."""

Sha = Annotated[str, Field(pattern=r"^(worktree:)?[0-9a-f]{40}$", description="Full hex id of the commit.")]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceLine(_Record):
    """One line of a file at a commit, as it stands there."""

    line: Annotated[int, Field(ge=1, description="1-based.")]
    text: Annotated[str, Field(description="Without its line ending.")]


class Provenance(_Record):
    """Lines of a commit that a unit stands on."""

    file: Annotated[str, Field(description="Path from the repository's root.")]
    start_line: Annotated[int, Field(ge=1, description="1-based.")]
    end_line: Annotated[int, Field(ge=1, description="1-based, inclusive.")]
    sha: Sha
    symbol: Annotated[str, Field(description="Qualified name inside the file; empty for the file itself.")]
    role: Annotated[str, Field(description="What the lines are to the unit: definition, handler...")]
    span_id: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="Identity of what stands there.")]
    source: Annotated[
        tuple[SourceLine, ...] | None, Field(description="The very lines, where they were asked for.")
    ] = None


class Freshness(_Record):
    """Whether what a unit stands on is still so at the repository's HEAD."""

    snapshot_sha: Sha
    head_sha: Annotated[Sha | None, Field(description="None where the repository cannot be reached.")]
    status: Annotated[
        Literal["current", "moved", "changed", "gone", "unknown"],
        Field(
            description="current: unchanged in place; moved: the same, elsewhere; changed: edited; "
            "gone: no longer there; unknown: HEAD cannot be read or compared."
        ),
    ]
    commits_behind: Annotated[
        int | None, Field(ge=0, description="Commits from the snapshot to HEAD; None where unknown.")
    ]


class AnsweredFrom(_Record):
    """The snapshot that an answer was read from, and how it stands to HEAD."""

    repository: str
    sha: Sha
    head_sha: Annotated[Sha | None, Field(description="HEAD now; None where it cannot be read.")]
    commits_behind: Annotated[
        int | None, Field(ge=0, description="Commits from this snapshot to HEAD; None where unknown.")
    ]
    notice: Annotated[
        str | None, Field(description="Set where another commit answers than the one asked for.")
    ] = None
    run: Annotated[str | None, Field(description="The command that indexes what is missing.")] = None


class Unit(_Record):
    """A unit of knowledge as served; it always names the lines that prove it."""

    key: Annotated[str, Field(description="Logical key, unique in the snapshot.")]
    kind: str
    title: str
    body: Annotated[dict[str, Any], Field(description="What the extractor read, by kind.")]
    text: Annotated[str, Field(description="What a person would want to read.")]
    provenance: Annotated[tuple[Provenance, ...], Field(min_length=1)]
    more_places: Annotated[
        int,
        Field(ge=0, description="Places that are not in provenance; get_source(target=key) has them all."),
    ] = 0
    method: Literal["deterministic", "llm_grounded"]
    extractor: str
    extractor_version: int
    model: Annotated[str | None, Field(description="The language model, for a unit that one wrote.")] = None
    confidence: Annotated[int, Field(ge=0, le=100, description="Per cent.")]
    freshness: Freshness
    artifact_id: Annotated[
        str | None, Field(description="First 16 hex digits of its id; kb://artifact/{id} reads it.")
    ] = None
    shortened: Annotated[
        tuple[str, ...] | None,
        Field(description="What was cut to fit the token budget: body, text, title, provenance."),
    ] = None
