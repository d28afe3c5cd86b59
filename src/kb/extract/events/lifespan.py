"""Lifespans: what an ASGI application runs at its start and end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.extract.events.facts import Blob, Mention, Seen
from kb.extract.events.joining import Found, Joining, Subject
from kb.extract.expressions import argument, dotted, keywords, last, text_of
from kb.model.artifacts import ArtifactDraft

_APPLICATIONS = frozenset({"FastAPI", "Starlette", "APIRouter", "Router", "Litestar", "FastMCP"})
_LISTS = {"on_startup": "startup", "on_shutdown": "shutdown"}


class Lifespans:
    """One artifact per function that is run, in the file that registers it."""

    id = "lifespan"
    calls = _APPLICATIONS | {"add_event_handler"}
    decorators = frozenset({"on_event", "on_startup", "on_shutdown"})
    own_decorators = None

    def worth(self, owner: str, verb: str, blob: Blob) -> bool:
        """Told from the callee's text."""
        return True

    def mentions(self, seen: Seen) -> Iterable[Mention]:
        """`FastAPI(lifespan=f)`, `on_startup=[f]`, `@app.on_event("startup")`, `app.add_event_handler(...)`."""
        if seen.definition is not None:
            when = text_of(argument(seen.expr, "event_type", 0)) if seen.expr.kind == "call" else None
            if seen.owner:
                yield seen.mention(
                    self.id, "handler", key=when or _LISTS.get(seen.verb, ""), dynamic=not when
                )
            return
        if seen.verb == "add_event_handler":
            when, handler = text_of(argument(seen.expr, "event_type", 0)), argument(seen.expr, "func", 1)
            yield seen.mention(self.id, "handler", key=when or "", dynamic=not when, handler=dotted(handler))
            return
        options = keywords(seen.expr)
        if dotted(options.get("lifespan")):
            yield seen.mention(self.id, "handler", key="lifespan", handler=dotted(options["lifespan"]))
        for word, when in _LISTS.items():
            given = options.get(word)
            for item in given.items if given is not None and given.kind in ("list", "tuple") else ():
                if dotted(item):
                    yield seen.mention(self.id, "handler", key=when, handler=dotted(item))

    def module_mentions(self, blob: Blob) -> Iterable[Mention]:
        """None."""
        return ()

    def keys(self, mention: Mention, blob: Blob) -> Iterable[str]:
        """None: registrations are read where they stand."""
        return ()

    def link(self, joining: Joining) -> Iterator[ArtifactDraft]:
        """Every registration of the file, by moment and function."""
        subjects: dict[tuple[str, str], Subject] = {}
        for mention in joining.own(self.id):
            if not mention.key:
                continue
            found = Found(mention, joining.file)
            if mention.decorates:
                name, grounding = joining.place(found), found.view.ground(mention.span, "handler")
            else:
                name, header = joining.function(found, mention.handler)
                grounding = header or found.view.ground(mention.span, "handler")
            form = "lifespan" if mention.key == "lifespan" else f"on_event:{mention.key}"
            subject = subjects.setdefault(
                (form, name), Subject("event", f"event:{form}:{name}", f"{mention.key}: {name}")
            )
            subject.stand(grounding)
            if not mention.decorates:
                subject.stand(found.view.ground(mention.span, "registration"))
            owner = dotted(mention.expr)
            owner = owner if last(owner) in _APPLICATIONS else owner.rpartition(".")[0]
            subject.add(
                "registrations", of=owner, within=joining.place(found) if not mention.decorates else ""
            )
        for subject in subjects.values():
            yield subject.draft()
