"""Hooks: SQLAlchemy's event listeners, and what Flask calls around a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.extract.events.facts import Blob, Mention, Seen
from kb.extract.events.joining import Found, Joining, Subject
from kb.extract.expressions import argument, dotted, last, render, text_of
from kb.model.artifacts import ArtifactDraft

_EVENT_MODULES = frozenset({"event", "events", "sa_event", ""})
_LISTEN = frozenset({"listen", "listens_for"})
_FLASK = frozenset(
    [
        "before_request",
        "after_request",
        "teardown_request",
        "before_app_request",
        "after_app_request",
        "teardown_app_request",
        "teardown_appcontext",
        "before_first_request",
        "context_processor",
        "app_context_processor",
        "errorhandler",
        "app_errorhandler",
        "url_value_preprocessor",
        "before_websocket",
        "shell_context_processor",
    ]
)


class Hooks:
    """One artifact per (event, target), in the first file that listens; one per Flask function."""

    id = "hook"
    calls = _LISTEN | _FLASK
    decorators = _LISTEN | _FLASK
    own_decorators = None

    def worth(self, owner: str, verb: str, blob: Blob) -> bool:
        """Told from the callee's text."""
        return verb in _FLASK or last(owner) in _EVENT_MODULES

    def mentions(self, seen: Seen) -> Iterable[Mention]:
        """`@event.listens_for(Target, "name")`, `event.listen(Target, "name", fn)`, `@app.before_request`."""
        if seen.verb in _FLASK:
            if seen.owner and seen.definition is not None:
                yield seen.mention(self.id, "handler", key=seen.verb)
            elif seen.owner and seen.blob.is_bound(seen.owner):
                handler = dotted(argument(seen.expr, "f", 0))
                if handler:
                    yield seen.mention(self.id, "handler", key=seen.verb, handler=handler)
            return
        if last(seen.owner) not in _EVENT_MODULES or seen.expr.kind != "call":
            return
        target, name = argument(seen.expr, "target", 0), argument(seen.expr, "identifier", 1)
        if target is None or name is None:
            if self._is_sqlalchemy(seen) and len(seen.expr.items) > 1:
                yield seen.mention(self.id, "handler", dynamic=True)
            return
        handler = dotted(argument(seen.expr, "fn", 2)) if seen.definition is None else ""
        subject = render(target)
        yield seen.mention(
            self.id,
            "handler",
            subject=subject,
            key=text_of(name) or "",
            dynamic=text_of(name) is None,
            handler=handler,
        )

    def _is_sqlalchemy(self, seen: Seen) -> bool:
        entry = seen.blob.imported.get((seen.owner or seen.verb).partition(".")[0])
        return entry is not None and entry.module.partition(".")[0] == "sqlalchemy"

    def module_mentions(self, blob: Blob) -> Iterable[Mention]:
        """None."""
        return ()

    def keys(self, mention: Mention, blob: Blob) -> Iterable[str]:
        """`hook:<event>:<last part of the target's own name>`."""
        if mention.subject and mention.key:
            return (f"hook:{mention.key}:{blob.original(mention.subject)}",)
        return ()

    def link(self, joining: Joining) -> Iterator[ArtifactDraft]:
        """Listeners by event and target; Flask's by function."""
        done: set[tuple[str, str]] = set()
        for mention in joining.own(self.id):
            found = Found(mention, joining.file)
            if mention.verb in _FLASK:
                yield self._flask(joining, found)
            elif mention.key:
                target = self._target(joining, found)
                if (mention.key, target) not in done:
                    done.add((mention.key, target))
                    yield from self._listeners(joining, mention.key, target)

    def _target(self, joining: Joining, found: Found) -> str:
        answer = joining.resolve(found, found.mention.subject)
        return answer.qualified or found.mention.subject

    def _listeners(self, joining: Joining, event: str, target: str) -> Iterator[ArtifactDraft]:
        users = [
            found
            for found in joining.all_with(f"hook:{event}:{last(target)}", (self.id,))
            if found.mention.key == event and self._target(joining, found) == target
        ]
        if not users or users[0].view.path != joining.file.path:
            return
        subject = Subject("event", f"event:hook:sqlalchemy:{event}:{target}", f"hook {event} of {target}")
        answer = joining.resolve(users[0], users[0].mention.subject)
        if answer.target == "internal" and answer.path is not None and answer.symbol_path:
            definition = joining.definition(answer.path, answer.symbol_path)
            view = joining.view(answer.path)
            if definition is not None and view is not None:
                subject.stand(view.ground_module(definition.header, "declaration"))
                subject.link("of", f"entity:{target}")
        elif answer.target not in ("external", "stdlib"):
            subject.doubt(70)
        for found in users:
            _add_handler(joining, subject, found)
        yield subject.draft()

    def _flask(self, joining: Joining, found: Found) -> ArtifactDraft:
        name = joining.place(found)
        if found.mention.handler:
            name, _ = joining.function(found, found.mention.handler)
        event = found.mention.key
        subject = Subject("event", f"event:hook:flask:{event}:{name}", f"{event}: {name}")
        _add_handler(joining, subject, found)
        subject.notes["on"] = dotted(found.mention.expr).rpartition(".")[0]
        return subject.draft()


def _add_handler(joining: Joining, subject: Subject, found: Found) -> None:
    mention = found.mention
    if mention.decorates:
        subject.stand(found.view.ground(mention.span, "handler"))
        subject.add("handlers", function=joining.place(found), via=mention.verb)
        return
    subject.stand(found.view.ground(mention.span, "registration"))
    if not mention.handler:
        subject.doubt(80)
        subject.add("handlers", function="not a name", via=mention.verb)
        return
    name, grounding = joining.function(found, mention.handler)
    subject.stand(grounding)
    subject.add("handlers", function=name, via=mention.verb)
