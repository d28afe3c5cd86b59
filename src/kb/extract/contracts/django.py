"""Django: URL configurations with includes and converters, function and class-based views.

Path and prefix come from `path`, `re_path` and `include`; which methods a view answers comes from its
decorators or its class. Django REST framework's views are described by `drf`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from kb.extract.contracts import drf_views
from kb.extract.contracts.facts import Site, last_of, names_of, target_keys
from kb.extract.contracts.handlers import Handler, attach, ground_header, named, view_call
from kb.extract.contracts.holders import Holder
from kb.extract.contracts.linker import Linker
from kb.extract.contracts.place import APPROXIMATE, Found, Place, Text, worst
from kb.extract.contracts.route import Route
from kb.extract.contracts.routers import Inclusion, Mount, Routers
from kb.extract.contracts.starlette import ground_mount
from kb.extract.contracts.templates import from_angles, from_regex
from kb.extract.expressions import argument, brief, dotted, is_none, keywords, last, positional, text_of
from kb.structure.facts import Expr, ModuleFacts

_ENTRIES = frozenset({"path", "re_path", "url"})
_PREFIXING = _ENTRIES | {"include", "i18n_patterns"}
_VERBS = ("get", "post", "put", "patch", "delete", "trace")
"""HEAD comes with GET, and OPTIONS with everything."""

_UNTOLD = "?"
"""Stands for an action that only a run can tell."""
_REQUIRE = {
    "require_GET": ("GET",),
    "require_POST": ("POST",),
    "require_safe": ("GET",),
}
_GENERIC = {
    "View": (), "TemplateView": ("GET",), "ListView": ("GET",), "DetailView": ("GET",),
    "BaseListView": ("GET",), "BaseDetailView": ("GET",), "ArchiveIndexView": ("GET",),
    "YearArchiveView": ("GET",), "MonthArchiveView": ("GET",), "WeekArchiveView": ("GET",),
    "DayArchiveView": ("GET",), "TodayArchiveView": ("GET",), "DateDetailView": ("GET",),
    "FormView": ("GET", "POST", "PUT"), "CreateView": ("GET", "POST", "PUT"),
    "UpdateView": ("GET", "POST", "PUT"), "DeleteView": ("DELETE", "GET", "POST", "PUT"),
    "RedirectView": ("DELETE", "GET", "PATCH", "POST", "PUT"),
    "LoginView": ("GET", "POST", "PUT"), "LogoutView": ("POST",), "PasswordChangeView": ("GET", "POST", "PUT"),
    "PasswordChangeDoneView": ("GET",), "PasswordResetView": ("GET", "POST", "PUT"),
    "PasswordResetDoneView": ("GET",), "PasswordResetConfirmView": ("GET", "POST", "PUT"),
    "PasswordResetCompleteView": ("GET",), "JavaScriptCatalog": ("GET",), "ProcessFormView": ("GET", "POST", "PUT"),
}  # fmt: skip


class Django:
    """The framework module of Django."""

    name = "django"
    callees = _PREFIXING
    decorators: frozenset[str] = frozenset()
    constructors: Mapping[str, str] = MappingProxyType({})

    def keys(self, site: Site, module: ModuleFacts) -> Iterable[str]:
        """`include:=<module>` for an include by string, `include:<name>` for one by reference."""
        target = _included(site)
        if target is None:
            return
        if target.kind == "tuple" and target.items:
            target = target.items[0]
        if target.kind == "str":
            yield f"include:={target.value}"
        elif target.kind in ("name", "call", "attr"):
            yield from target_keys(site, target, module)
        elif target.kind not in ("list", "binop"):
            yield "include:*"
        elif target.kind == "binop":
            for item in target.items:
                yield from (f"include:{name}" for name in names_of(item, module))

    def includes(self, routers: Routers, path: str, site: Site) -> Iterator[tuple[Expr, Inclusion]]:
        """`path(prefix, include(target))`, where the target is not written inside the call."""
        target = _included(site)
        if target is None or target.kind == "list":
            return
        for place in routers.linker.runs(path, site):
            prefix = _pattern(routers.linker, place, site)
            yield target, Inclusion(path, site, "include", prefix, place, element=True)

    def own_prefix(self, routers: Routers, holder: Holder) -> Text:
        """None: prefixes stand at the includes."""
        return Text("")

    def element_prefix(self, routers: Routers, place: Place, site: Site) -> Text | None:
        """What `path(prefix, include([...]))` and `i18n_patterns(...)` put before what they hold."""
        name = last_of(site.expr)
        if name in _ENTRIES:
            return _pattern(routers.linker, place, site)
        if name == "i18n_patterns":
            return Text("{language}/", APPROXIMATE)
        return Text("") if name == "include" else None

    def routes(self, routers: Routers) -> Iterator[Route]:
        """The url entries of the linked file that name a view."""
        linker = routers.linker
        path = linker.file.path
        for site in linker.own.sites:
            if site.handler or last_of(site.expr) not in _ENTRIES or not _is_entry(linker, site):
                continue
            if _included(site) is not None:
                if self._foreign(routers, site):
                    yield from self._included_elsewhere(routers, site)
                continue
            for place in linker.runs(path, site):
                view = argument(site.expr, "view", 1)
                for mount in routers.element_mounts(path, site):
                    inside = mount.read_in(place)
                    local = _pattern(linker, inside, site)
                    yield from self._entry(routers, site, inside, local, view, mount)

    def _entry(
        self, routers: Routers, site: Site, place: Place, local: Text, view: Expr | None, mount: Mount
    ) -> Iterator[Route]:
        linker = routers.linker
        handler = named(linker, place, view)
        template, parameters = _template(mount.prefix + local)
        made = view_call(linker, place, view)
        given = (
            {key: (value, made[1]) for key, value in keywords(made[0]).items()} if made is not None else {}
        )
        for method, answering, action in _operations(linker, place, handler, view, made):
            route = Route("django", method, template, mount.root, handler.name)
            route.conditional = mount.conditional or site.branch == "if"
            route.stand_on(linker.file.ground(site.span, "route"))
            self._attach(linker, route, handler, answering)
            ground_mount(routers, route, mount)
            route.details["parameters"] = parameters
            name = argument(site.expr, "name", 3)
            route.details["name"] = linker.text(place, name).value if name is not None else None
            if action == _UNTOLD:
                route.unresolved.append("the actions that as_view is given")
            elif action:
                route.details["action"] = action
            if handler.found is not None:
                drf_views.describe(linker, route, handler.found, method, given)
            yield route

    @staticmethod
    def _attach(linker: Linker, route: Route, handler: Handler, answering: Found | None) -> None:
        found = handler.found
        if found is not None and found.kind == "class":
            route.stand_on(ground_header(linker, found, "view"))
            route.docstring = found.definition.docstring if found.definition is not None else None
        if answering is not None and answering.definition is not None:
            handler = Handler(handler.name, answering, ground_header(linker, answering, "handler"))
        attach(linker, route, handler)

    @staticmethod
    def _foreign(routers: Routers, site: Site) -> bool:
        """Whether an include names something that is not in the repository, or cannot be told."""
        target = _included(site)
        if target is None or target.kind in ("list", "binop"):
            return False
        places = routers.linker.runs(routers.linker.file.path, site)
        return all(routers.holder(place, target) is None for place in places)

    @staticmethod
    def _included_elsewhere(routers: Routers, site: Site) -> Iterator[Route]:
        """One artifact that says that routes of another distribution (or of a dynamic list) are below."""
        linker = routers.linker
        target = _included(site)
        said = (target.value if target is not None and target.kind == "str" else brief(target)) or "dynamic"
        for place in linker.runs(linker.file.path, site):
            local = _pattern(linker, place, site)
            for mount in routers.element_mounts(linker.file.path, site):
                template, _ = _template(mount.prefix + local)
                route = Route("django", "INCLUDE", template, mount.root, said)
                route.stand_on(linker.file.ground(site.span, "route"))
                ground_mount(routers, route, mount)
                route.unresolved.append(f"the routes of {said}")
                route.conditional = mount.conditional or site.branch == "if"
                yield route


def _is_entry(linker: Linker, site: Site) -> bool:
    """Whether the call is Django's (`path` is also a method of much else)."""
    if not site.expr.value:
        return False
    found = linker.find(Place(linker.file.path, site.scope), site.expr.value)
    return found is not None and found.qualified.startswith("django.")


def _included(site: Site) -> Expr | None:
    """What an entry includes: the argument of `include(...)`, or `x.urls` in its place; None for a view."""
    if last_of(site.expr) not in _ENTRIES:
        return None
    view = argument(site.expr, "view", 1)
    if view is None:
        return None
    if view.kind == "call" and last(view.value) == "include":
        target = argument(view, "arg", 0)
        inline = target is not None and target.kind == "tuple" and bool(target.items)
        return target.items[0] if target is not None and inline else target
    if view.kind == "name" and view.value.endswith(".urls"):
        return view
    if view.kind == "tuple" and view.items and view.items[0].kind in ("name", "list"):
        return view.items[0]
    return None


def _pattern(linker: Linker, place: Place, site: Site) -> Text:
    """The entry's own part of the path, a regular expression marked by a leading `^`-less group as is."""
    said = linker.text(place, argument(site.expr, "route", 0) or argument(site.expr, "regex"))
    if last_of(site.expr) == "path":
        return said
    plain, exact = from_regex(said.value)
    return Text(plain, said.how if exact else worst(said.how, APPROXIMATE))


def _template(text: Text) -> tuple[Text, list[dict[str, object]]]:
    plain, parameters = from_angles("/" + text.value)
    return Text(plain, text.how), parameters


def _operations(
    linker: Linker, place: Place, handler: Handler, view: Expr | None, made: tuple[Expr, Place] | None
) -> Iterator[tuple[str, Found | None, str]]:
    """Methods that a view answers, each with the method of its class that does and the action that it is."""
    found = handler.found
    asked = argument(made[0], "actions", 0) if made is not None else None
    if found is None:
        yield "ANY", None, ""
    elif asked is not None and made is not None and not is_none(asked):
        actions = _actions(linker, made[1], asked)
        allowed = _allowed(linker, found, made) or frozenset(verb.lower() for verb in actions)
        for verb, action in actions.items():
            if verb.lower() in allowed:
                yield verb.upper(), linker.member(found, action), action
        if not actions:
            yield "ANY", None, _UNTOLD
    elif not found.internal:
        for verb in (
            _GENERIC.get(last(found.qualified)) or drf_views.generic_methods(found.qualified) or ("ANY",)
        ):
            yield verb, None, ""
    elif found.kind == "class":
        for verb, member in _class_methods(linker, found, made):
            yield verb, member, ""
    else:
        for verb in _function_methods(linker, found, view):
            yield verb, None, ""


def _actions(linker: Linker, place: Place, asked: Expr) -> dict[str, str]:
    """`as_view({"get": "list"})`; nothing where that is not written as a dict of texts."""
    found = linker.value(place, asked)
    if found is None or found[0].kind != "dict":
        return {}
    items = found[0].items
    return {
        key.value: value.value
        for key, value in zip(items[::2], items[1::2], strict=False)
        if key.kind == "str" and value.kind == "str"
    }


def _allowed(linker: Linker, found: Found, made: tuple[Expr, Place] | None) -> frozenset[str] | None:
    """`http_method_names` of the call of `as_view` or of the class, in small letters; None where nothing is said."""
    said = keywords(made[0]).get("http_method_names") if made is not None else None
    read = (said, made[1]) if said is not None and made is not None else None
    given = read or drf_views.setting(linker, found, "http_method_names")
    texts = linker.texts(given[1], given[0]) if given is not None else None
    return frozenset(text.lower() for text in texts) if texts is not None else None


def _class_methods(
    linker: Linker, found: Found, made: tuple[Expr, Place] | None
) -> Iterator[tuple[str, Found | None]]:
    own = {verb: linker.member(found, verb) for verb in _VERBS}
    methods: dict[str, Found | None] = {
        verb.upper(): member for verb, member in own.items() if member is not None
    }
    for base in ancestors(linker, found):
        if not base.internal:
            for verb in _GENERIC.get(last(base.qualified)) or drf_views.generic_methods(base.qualified) or ():
                methods.setdefault(verb, None)
    allowed = _allowed(linker, found, made)
    if allowed is not None:
        methods = {verb: member for verb, member in methods.items() if verb.lower() in allowed}
    let_through = _dispatched(linker, found)
    if let_through is not None:
        methods = {verb: member for verb, member in methods.items() if verb in let_through}
    yield from sorted(methods.items()) if methods else [("ANY", None)]


def _dispatched(linker: Linker, found: Found) -> frozenset[str] | None:
    """Methods that `@method_decorator(require_POST, name="dispatch")` lets through; None where it says nothing."""
    classes = (found, *(base for base in ancestors(linker, found) if base.internal))
    for owner in classes:
        for decorator in owner.definition.decorators if owner.definition is not None else ():
            said = text_of(argument(decorator.expr, "name", 1))
            if last_of(decorator.expr) == "method_decorator" and said == "dispatch":
                limit = _limit(linker, owner.place, argument(decorator.expr, "decorator", 0))
                if limit is not None:
                    return limit
    dispatch = linker.member(found, "dispatch")
    for decorator in dispatch.definition.decorators if dispatch and dispatch.definition is not None else ():
        if dispatch is not None and last_of(decorator.expr) == "method_decorator":
            limit = _limit(linker, dispatch.place, argument(decorator.expr, "decorator", 0))
            if limit is not None:
                return limit
    return None


def _limit(linker: Linker, place: Place, expr: Expr | None) -> frozenset[str] | None:
    """Methods that a decorator, or the first of a list of them that says so, lets through."""
    for item in expr.items if expr is not None and expr.kind in ("list", "tuple") else (expr,):
        name = last(dotted(item)) if item is not None else ""
        if name in _REQUIRE:
            return frozenset(_REQUIRE[name])
        if name == "require_http_methods" and item is not None and item.kind == "call":
            texts = linker.texts(place, argument(item, "request_method_list", 0))
            if texts:
                return frozenset(text.upper() for text in texts)
    return None


def ancestors(linker: Linker, found: Found, depth: int = 0) -> Iterator[Found]:
    """Every base class as far as it is known, depth first."""
    if depth > 8 or found.kind != "class" or not found.internal:
        return
    for base in linker.bases(found):
        yield base
        yield from ancestors(linker, base, depth + 1)


def _function_methods(linker: Linker, found: Found, view: Expr | None) -> tuple[str, ...]:
    """Methods that decorators of a function view let through, `ANY` where they say nothing."""
    decorators = (
        [decorator.expr for decorator in found.definition.decorators] if found.definition is not None else []
    )
    wrappers = []
    while view is not None and view.kind == "call":  # require_POST(view) in the url entry itself
        wrappers.append(
            view if last(view.value) in ("require_http_methods", "api_view") else Expr("name", view.value)
        )
        view = next((item for item in view.items[1:] if item.kind in ("call", "name")), None)
    for expr in (*decorators, *wrappers):
        name = last(dotted(expr))
        if name in _REQUIRE:
            return _REQUIRE[name]
        if name in ("require_http_methods", "api_view") and expr.kind == "call":
            given = positional(expr)
            texts = linker.texts(found.place, given[0]) if given else ["GET"]
            return tuple(sorted(text.upper() for text in texts)) if texts else ("ANY",)
    return ("ANY",)
