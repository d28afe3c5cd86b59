"""Keys that are unique in the snapshot: does another file serve the same path of the same application?

Each file's facts carry a key for every path that its routes begin below their include (`claim:orders/{id}`).
A route at `/api/orders/{id}` is contested by a file that is included at `/api` and claims `orders/{id}`,
or at `/api/orders` and claims `{id}`, and so on. Of the files that contest a path, the first by name has
the plain key; the others name their module in theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.extract.contracts.facts import JOIN, URLCONF, ContractFacts, Site, last_of
from kb.extract.contracts.place import DYNAMIC
from kb.extract.contracts.route import Root, Route
from kb.extract.contracts.routers import Holder, Inclusion, Routers
from kb.extract.contracts.templates import from_angles, from_braces, from_regex
from kb.extract.expressions import argument, keywords, last, positional, text_of
from kb.structure.facts import Expr

_SHARED_INCLUDES = "includes:shared"
"""Key of a file that includes something in an application or router that it does not make itself."""
_UNTOLD = "?"
_ANY = f"claim:{_UNTOLD}"
"""Key of a file with a path that its own facts do not tell."""

_INCLUDING = frozenset(
    "include_router register_blueprint register_api add_namespace mount Mount Host host Api include Starlette "
    "Router".split()
)
_ON_RECEIVER = frozenset({"include_router", "register_blueprint", "register_api", "add_namespace", "mount"})
_PREFIXES = ("prefix", "url_prefix", "path")
_MAKERS = frozenset(
    {"FastAPI", "APIRouter", "Starlette", "Router", "Flask", "Blueprint", "Namespace", "include"}
)
_REGULAR = frozenset({"re_path", "url"})
_ENTRIES = _REGULAR | {"path"}
_REPLACEABLE = frozenset({"Blueprint", "APIBlueprint", "Namespace", "Api"})
_MOUNTED = "!"
"""Before the claims of mounts and includes, whose keys (`api:MOUNT /static`) no route can have."""
_ENDS = re.compile(r"^/+|/+$|//+")


def normal(text: str, *, regex: bool = False) -> str:
    """A path template in the one form in which claims are compared."""
    plain = from_regex(text)[0] if regex else from_angles(from_braces(text)[0])[0]
    return _ENDS.sub(lambda match: "/" if match.start() and match.end() < len(plain) else "", plain)


def keys(found: ContractFacts) -> Iterator[str]:
    """The claims of one file, and whether it includes anything."""
    made = {site.target: site for site in found.sites if site.target}
    for site in found.sites:
        name = last_of(site.expr)
        receiver = site.expr.value.rpartition(".")[0]
        if name in _ON_RECEIVER and not site.decorates and receiver not in made:
            yield _SHARED_INCLUDES
        if site.expr.kind in (JOIN, URLCONF) or (name in _MAKERS and not site.decorates):
            continue
        if name == "DefaultRouter":
            yield "claim:"
        elif name == "register":
            base = text_of(argument(site.expr, "prefix", 0))
            yield _ANY if base is None else f"claim:{normal(base).partition('/')[0]}/*"
        elif name not in _INCLUDING or name in ("mount", "Mount"):
            yield from _claims(found, site, made)


def _claims(found: ContractFacts, site: Site, made: dict[str, Site]) -> Iterator[str]:
    above = _contained(found, site)
    for local in _paths(site):
        said = text_of(local)
        name = last_of(site.expr)
        maker = made.get(site.expr.value.rpartition(".")[0])
        if said is None or above is None or site.loops:
            yield f"shared:{_UNTOLD}" if maker is None and _has_receiver(site) else _ANY
            continue
        below = f"{above}/{normal(said, regex=name in _REGULAR)}"
        mark = _MOUNTED if name in ("mount", "Mount") or _is_include(site) else ""
        if maker is None and _has_receiver(site):
            yield f"shared:{mark}{normal(below)}"
            continue
        given = keywords(maker.expr) if maker is not None else {}
        prefix = next((given[name] for name in _PREFIXES if name in given), None)
        own = text_of(prefix)
        # Where a blueprint is registered, another prefix may take the place of its own.
        if prefix is None or (maker is not None and last_of(maker.expr) in _REPLACEABLE):
            yield f"claim:{mark}{normal(below)}"
        if own is not None:
            yield f"claim:{mark}{normal(f'{own}/{below}')}"
        elif prefix is not None:
            yield _ANY
        elif maker is not None and last_of(maker.expr) == "Namespace":
            named = text_of(argument(maker.expr, "name", 0)) or ""
            yield f"claim:{normal(f'{named}/{below}')}"


def _has_receiver(site: Site) -> bool:
    """Whether the call is a method of what it registers on (`app.get`), not an element of a list."""
    return "." in site.expr.value and last_of(site.expr) not in _ENTRIES


def _is_include(site: Site) -> bool:
    """Whether a url entry includes others instead of naming a view."""
    view = argument(site.expr, "view", 1)
    if view is None or last_of(site.expr) not in _ENTRIES:
        return False
    return (view.kind == "call" and last(view.value) == "include") or view.value.endswith(".urls")


def _paths(site: Site) -> tuple[Expr | None, ...]:
    if last_of(site.expr) == "add_resource":
        return positional(site.expr)[1:]
    for name in ("path", "rule", "route", "regex"):
        given = argument(site.expr, name)
        if given is not None:
            return (given,)
    first = positional(site.expr)[:1]
    return first or (None,)


def _contained(found: ContractFacts, site: Site) -> str | None:
    """Literal prefixes of the calls that the site stands in; None where one is not literal."""
    above = ""
    while site.container >= 0:
        site = found.sites[site.container]
        name = last_of(site.expr)
        if name == "i18n_patterns":
            return None
        if name in _ENTRIES or name in ("Mount", "mount"):
            said = text_of(next(iter(positional(site.expr)), None) or argument(site.expr, "path"))
            if said is None:
                return None
            above = f"{normal(said, regex=name in _REGULAR)}/{above}"
    return above


class Claims:
    """Says which paths of the linked file another file serves too."""

    def __init__(self, routers: Routers, primary: Root) -> None:
        self.routers = routers
        self.linker = routers.linker
        self.primary = primary
        self._below: dict[str, dict[str, list[tuple[Expr, Inclusion]]]] = {}
        self._targets: dict[tuple[str, str], frozenset[str]] = {}
        self._shared: dict[str, list[tuple[str, Holder]]] = {}
        self._contested: dict[tuple[str, str], bool] = {}

    def qualifier(self, route: Route) -> str:
        """`#<module>` where a file that comes first by name may have the same key; "" elsewhere."""
        root = route.root if route.root.label else self.primary
        mark = _MOUNTED if route.method in ("INCLUDE", "MOUNT") else ""
        if route.path.how != DYNAMIC and not self._is_contested(root, normal(route.path.value), mark):
            return ""
        file = self.linker.file
        return f"#{file.key_prefix}{file.module_name}" if file.module_name else f"#{file.path}"

    def _is_contested(self, root: Root, path: str, mark: str) -> bool:
        key = (root.label, mark + path)
        if key not in self._contested:
            parts = path.split("/") if path else []
            splits = [("/".join(parts[:at]), "/".join(parts[at:])) for at in range(len(parts) + 1)]
            self._contested[key] = any(
                self._also_claimed(root, above, below, mark) for above, below in splits
            )
        return self._contested[key]

    def _also_claimed(self, root: Root, above: str, below: str, mark: str) -> bool:
        own = self.linker.file.path
        sharing = {
            *self.linker.who_has(f"shared:{mark}{below}"),
            *self.linker.who_has(f"shared:{_UNTOLD}"),
        }
        if any(path < own and self._registers_below(path, root, (above, below)) for path in sharing):
            return True
        included = self._included_at(root, above)
        if not any(path < own for path in included):
            return False
        first = below.partition("/")[0]
        claiming = {*self.linker.who_has(f"claim:{mark}{below}"), *self.linker.who_has(f"claim:{first}/*")}
        if any(path < own for path in included & claiming):
            return True
        untold = included & frozenset(self.linker.who_has(_ANY))
        return any(path < own and self._says(path, below) for path in untold)

    def _registers_below(self, path: str, root: Root, split: tuple[str, str]) -> bool:
        """Whether a file registers a path on what it did not make, at the same prefix of the same root."""
        above, below = split
        for local, holder in self._shared_by(path):
            if local == below:
                ways = self.routers.mounts(holder)
                same = (way for way in ways if (way.root.label or self.primary.label) == root.label)
                if any(normal(way.prefix.value) == above for way in same):
                    return True
        return False

    def _shared_by(self, path: str) -> list[tuple[str, Holder]]:
        """What a file registers, and on which holder that another file makes."""
        if path not in self._shared:
            found: list[tuple[str, Holder]] = []
            facts = self.linker.facts(path)
            for site in facts[0].sites if facts is not None else ():
                for place in self.linker.runs(path, site) if _has_receiver(site) else ():
                    holder = self.routers.holder(place, Expr("name", site.expr.value.rpartition(".")[0]))
                    if holder is not None:
                        texts = (self.linker.text(place, local) for local in _paths(site))
                        found.extend((normal(text.value), holder) for text in texts)
            self._shared[path] = found
        return self._shared[path]

    def _included_at(self, root: Root, above: str) -> frozenset[str]:
        """Files whose routers or lists are reached from the root at exactly this prefix."""
        key = (root.label, above)
        if key not in self._targets:
            found = set() if above else {root.path}
            for target, inclusion in self._inclusions(root).get(above, ()):
                holder = self.routers.holder(inclusion.place, target)
                if holder is not None:
                    found.add(holder.path)
            self._targets[key] = frozenset(found)
        return self._targets[key]

    def _inclusions(self, root: Root) -> dict[str, list[tuple[Expr, Inclusion]]]:
        """Every inclusion below the root by the whole prefix at which its target is reached."""
        if root.label not in self._below:
            found: dict[str, list[tuple[Expr, Inclusion]]] = {}
            waiting, seen = [root.path, *self.linker.who_has(_SHARED_INCLUDES)], set()
            while waiting:
                path = waiting.pop()
                if path in seen or not path:
                    continue
                seen.add(path)
                for target, inclusion in self.routers.inclusions_in(path):
                    holder = self.routers.holder(inclusion.place, target)
                    if holder is not None:
                        waiting.append(holder.path)
                    for way in self.routers.ways_above(inclusion):
                        if (way.root.label or self.primary.label) == root.label:
                            prefix = normal((way.prefix + inclusion.prefix).value)
                            found.setdefault(prefix, []).append((target, inclusion))
            self._below[root.label] = found
        return self._below[root.label]

    def _says(self, path: str, below: str) -> bool:
        """Whether a path that facts alone do not tell, read with look-ups, is this one."""
        facts = self.linker.facts(path)
        for site in facts[0].sites if facts is not None else ():
            if site.expr.kind in (JOIN, URLCONF) or last(site.expr.value) in _MAKERS:
                continue
            if site.container >= 0:
                return True
            for place in self.linker.runs(path, site):
                receiver = Expr("name", site.expr.value.rpartition(".")[0])
                holder = self.routers.holder(place, receiver) if receiver.value else None
                own = self.routers.prefix_of(holder) if holder is not None else None
                for local in _paths(site):
                    said = self.linker.text(place, local)
                    whole = f"{own.value}/{said.value}" if own is not None else said.value
                    if below in (normal(whole), normal(said.value)):
                        return True
        return False
