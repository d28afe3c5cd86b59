"""The arguments that several tools share, described for the model that fills them in."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kb.retrieve.budget import DEFAULT_BUDGET, LEAST_BUDGET, MOST_BUDGET

Repo = Annotated[
    str | None,
    Field(
        max_length=1000,
        description="Name of the repository (list_repositories). Needed only where several are indexed.",
    ),
]
CommitIsh = Annotated[
    str | None,
    Field(
        max_length=1000,
        description="Commit to read: SHA, branch, tag or `worktree`. Default: HEAD's snapshot, else its "
        "nearest indexed ancestor's.",
    ),
]
Kinds = Annotated[
    list[str] | None,
    Field(
        max_length=50,
        description="Only these kinds: contract, entity, event, setting, command, dependency, module, "
        "symbol, import, package_surface, surface, passage.",
    ),
]
TokenBudget = Annotated[
    int,
    Field(
        ge=LEAST_BUDGET,
        le=MOST_BUDGET,
        description="Most tokens of the answer. What does not fit is counted in `omitted`.",
    ),
]
WholeBudget = Annotated[
    int,
    Field(
        ge=LEAST_BUDGET,
        le=MOST_BUDGET,
        description="Most tokens of the answer. What does not fit is cut, and named in `shortened`.",
    ),
]
CursorText = Annotated[
    str | None,
    Field(max_length=200, description="next_cursor of the page before, with all other arguments unchanged."),
]
Limit = Annotated[int | None, Field(ge=1, le=100, description="Most units of one page. Default: as fit.")]
TargetName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1000,
        description="A logical key (symbol:shop.orders.Order), dotted name or the end of one (Order.total), "
        "route (GET /orders), file, file:line or span id.",
    ),
]
FilePath = Annotated[
    str, Field(min_length=1, max_length=4096, description="Path from the repository's root.")
]
NamePart = Annotated[str | None, Field(max_length=500, description="Part of the logical key, in any case.")]
Folder = Annotated[str | None, Field(max_length=4096, description="Only what stands in this file or folder.")]
BUDGET: int = DEFAULT_BUDGET
