"""The protocol of a framework module: one plug-in reads the routes of one framework.

To add a framework, write a module with one object of this protocol and list it in
`registry.FRAMEWORKS`. `handlers.py` and `routers.py` have what most of them need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from kb.extract.contracts.facts import Site
from kb.extract.contracts.holders import Holder
from kb.extract.contracts.place import Place, Text
from kb.extract.contracts.route import Route
from kb.extract.contracts.routers import Inclusion, Routers
from kb.structure.facts import Expr, ModuleFacts


class Framework(Protocol):
    """Reads the routes of one framework."""

    name: str
    callees: frozenset[str]
    """Last names of the calls that it wants among a file's sites."""
    decorators: frozenset[str]
    """Last names of the decorators that declare routes."""
    constructors: Mapping[str, str]
    """Full dotted names of what makes its applications and routers, each with a role of `routers`."""

    def keys(self, site: Site, module: ModuleFacts) -> Iterable[str]:
        """Keys by which other files' links find this site."""
        ...

    def includes(self, routers: Routers, path: str, site: Site) -> Iterator[tuple[Expr, Inclusion]]:
        """What the site includes; nothing where it is no include of this framework."""
        ...

    def own_prefix(self, routers: Routers, holder: Holder) -> Text:
        """The prefix that a holder's constructor gives."""
        ...

    def element_prefix(self, routers: Routers, place: Place, site: Site) -> Text | None:
        """What the site puts before the elements inside it; None where it is no such call."""
        ...

    def routes(self, routers: Routers) -> Iterator[Route]:
        """The routes that the linked file is home to, in source order."""
        ...
