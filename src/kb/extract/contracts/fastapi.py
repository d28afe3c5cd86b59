"""FastAPI: path operations on applications and routers, with all that their signatures say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from kb.extract.contracts.facts import Site, last_of, target_keys
from kb.extract.contracts.handlers import Handler, decorated, holder_of, named, receiver
from kb.extract.contracts.holders import APPLICATION, ROUTER, Holder
from kb.extract.contracts.linker import Linker, keyword
from kb.extract.contracts.operation import Operation
from kb.extract.contracts.place import Place, Text
from kb.extract.contracts.route import Route
from kb.extract.contracts.routers import Inclusion, Mount, Routers
from kb.extract.contracts.starlette import included_elsewhere
from kb.extract.expressions import argument
from kb.structure.facts import Expr, ModuleFacts

_VERBS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})
_DECORATORS = _VERBS | {"api_route", "websocket"}
_REGISTRATIONS = frozenset({"add_api_route", "add_api_websocket_route"})


class FastAPI:
    """The framework module of FastAPI."""

    name = "fastapi"
    callees = frozenset({"FastAPI", "APIRouter", "include_router"}) | _REGISTRATIONS
    decorators = _DECORATORS
    constructors: Mapping[str, str] = MappingProxyType(
        {
            "fastapi.FastAPI": APPLICATION,
            "fastapi.applications.FastAPI": APPLICATION,
            "fastapi.APIRouter": ROUTER,
            "fastapi.routing.APIRouter": ROUTER,
            "fastapi_utils.inferring_router.InferringRouter": ROUTER,
            "fastapi_restful.inferring_router.InferringRouter": ROUTER,
            "fastapi_versioning.VersionedFastAPI": APPLICATION,
            "fastapi_pagination.FastAPI": APPLICATION,
        }
    )

    def keys(self, site: Site, module: ModuleFacts) -> Iterable[str]:
        """`include:<name>` for what is included."""
        if last_of(site.expr) == "include_router":
            yield from target_keys(site, argument(site.expr, "router", 0), module)

    def includes(self, routers: Routers, path: str, site: Site) -> Iterator[tuple[Expr, Inclusion]]:
        """`include_router` in every run of its loops."""
        if last_of(site.expr) != "include_router":
            return
        target = argument(site.expr, "router", 0)
        if target is None:
            return
        for place in routers.linker.runs(path, site):
            prefix = routers.linker.text(place, keyword(site.expr, "prefix"))
            yield (
                target,
                Inclusion(path, site, "include", prefix, place, routers.holder(place, receiver(site))),
            )

    def own_prefix(self, routers: Routers, holder: Holder) -> Text:
        """`APIRouter(prefix=...)`."""
        site = routers.site_of(holder)
        return (
            routers.linker.text(holder.place, keyword(site.expr, "prefix")) if site is not None else Text("")
        )

    def element_prefix(self, routers: Routers, place: Place, site: Site) -> Text | None:
        """Never: path operations stand in no list."""
        return None

    def routes(self, routers: Routers) -> Iterator[Route]:
        """Decorated functions and `add_api_route` calls of the linked file."""
        for site in routers.linker.own.sites:
            name = last_of(site.expr)
            if name in (_DECORATORS if site.decorates else _REGISTRATIONS):
                yield from self._site(routers, site, name)
            elif name == "include_router":
                yield from included_elsewhere(routers, site, self.includes)

    def _site(self, routers: Routers, site: Site, name: str) -> Iterator[Route]:
        linker = routers.linker
        for place, holder in holder_of(routers, site):
            if holder is None or holder.framework not in ("fastapi", ""):
                continue
            likely = name in _REGISTRATIONS or "fastapi" in _imported(linker)
            if not holder.framework and not likely:
                continue
            handler = (
                decorated(linker, site, _DECORATORS)
                if site.handler
                else named(linker, place, site.applied or argument(site.expr, "endpoint", 1))
            )
            for mount in routers.mounts(holder):
                inside = mount.read_in(place)
                local = linker.text(inside, argument(site.expr, "path", 0))
                yield from self._operations(routers, site, name, inside, handler, local, mount)

    def _operations(
        self,
        routers: Routers,
        site: Site,
        name: str,
        place: Place,
        handler: Handler,
        local: Text,
        mount: Mount,
    ) -> Iterator[Route]:
        if name in ("websocket", "add_api_websocket_route"):
            methods: list[str] | None = ["WEBSOCKET"]
        elif name in _VERBS:
            methods = [name.upper()]
        else:
            asked = argument(site.expr, "methods")
            methods = routers.linker.texts(place, asked) if asked is not None else ["GET"]
        for method in sorted({method.upper() for method in methods or ["ANY"]}):
            operation = Operation(routers, site, place, handler, mount, method, mount.prefix + local)
            route = operation.route()
            if methods is None:
                route.unresolved.append("methods")
            yield route


def _imported(linker: Linker) -> frozenset[str]:
    if "imported" not in linker.memo:
        names = {i.module.partition(".")[0] for i in linker.file.module.imports if not i.level}
        linker.memo["imported"] = frozenset(names)
    found: frozenset[str] = linker.memo["imported"]
    return found
