"""Topics: publish/subscribe calls with a literal name, whatever the broker."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kb.extract.events.facts import Blob, Mention, Seen
from kb.extract.events.joining import Found, Joining, Subject
from kb.extract.expressions import argument, last, pattern_of, positional
from kb.model.artifacts import ArtifactDraft
from kb.structure.facts import Expr

_PUBLISH = frozenset({"publish", "basic_publish", "publisher", "send_and_wait", "xadd"})
_PUBLISH_ON_BUS = frozenset({"emit", "produce", "send_message", "dispatch", "fire", "trigger", "send"})
_SUBSCRIBE = frozenset({"subscribe", "psubscribe", "subscriber", "basic_consume", "ssubscribe"})
_SUBSCRIBE_ON_BUS = frozenset(
    {"on", "listen", "consume", "add_listener", "add_event_listener", "register_handler", "agent"}
)
_WORDS = ("topic", "channel", "queue", "routing_key", "subject", "event", "event_name", "stream")
_BUS = re.compile(
    r"bus|broker|event|emitter|sio|socket|pubsub|redis|queue|channel|producer|consumer|dispatcher|hub|nats|mqtt|kafka",
    re.IGNORECASE,
)
_CLIENT = re.compile(r"client|connection|conn\b|stream|topic", re.IGNORECASE)
"""May be a broker's where the verb is one of publishing or subscribing."""
_NAME = re.compile(r"[\w.:/\-{}*#$+]+")
_SQLALCHEMY = frozenset({"event", "sa_event"})
"""`event.listen(...)` is SQLAlchemy's, and read as a hook."""
_CERTAIN = _PUBLISH | _SUBSCRIBE


class Topics:
    """One artifact per topic, in the first file that names it; publishers and subscribers by role."""

    id = "topic"
    calls = _PUBLISH | _PUBLISH_ON_BUS | _SUBSCRIBE | _SUBSCRIBE_ON_BUS
    decorators = _SUBSCRIBE | _SUBSCRIBE_ON_BUS | {"publisher"}
    own_decorators = None

    def worth(self, owner: str, verb: str, blob: Blob) -> bool:
        """Told from the callee's text."""
        return verb in _CERTAIN or bool(_BUS.search(owner))

    def mentions(self, seen: Seen) -> Iterable[Mention]:
        """A verb of publishing or subscribing; the common ones only on something that is called a bus."""
        if last(seen.owner) in _SQLALCHEMY:
            return
        on_bus = bool(_BUS.search(seen.owner))
        if seen.expr.kind != "call" or (seen.verb not in _CERTAIN and not on_bus):
            return
        role = "emitter" if seen.verb in _PUBLISH | _PUBLISH_ON_BUS else "handler"
        names = list(_topics(seen.expr))
        if not names:
            # `publish(event_object)` on no bus may be anything; on a bus it is a topic made at run time.
            likely = on_bus or (seen.verb in _CERTAIN and _CLIENT.search(seen.owner))
            if likely and len(seen.expr.items) > 1 and seen.verb not in ("send", "emit", "on", "trigger"):
                yield seen.mention(self.id, role, dynamic=True)
            return
        for name in names:
            if _NAME.fullmatch(name):
                handler = argument(seen.expr, "handler", 1) if role == "handler" else None
                written = handler.value if handler is not None and handler.kind == "name" else ""
                yield seen.mention(self.id, role, key=name, handler=written)

    def module_mentions(self, blob: Blob) -> Iterable[Mention]:
        """None."""
        return ()

    def keys(self, mention: Mention, blob: Blob) -> Iterable[str]:
        """`topic:<name or pattern>`."""
        return (f"topic:{mention.key}",) if mention.key else ()

    def link(self, joining: Joining) -> Iterator[ArtifactDraft]:
        """Topics that this file is the first to name."""
        for name in dict.fromkeys(mention.key for mention in joining.own(self.id) if mention.key):
            users = [f for f in joining.all_with(f"topic:{name}", (self.id,)) if f.mention.key == name]
            if users and users[0].view.path == joining.file.path:
                yield self._draft(joining, name, users)

    def _draft(self, joining: Joining, name: str, users: list[Found]) -> ArtifactDraft:
        subject = Subject("event", f"event:topic:{name}", f"topic {name}")
        if "*" in name:
            subject.notes["pattern"] = "parts are made at run time"
            subject.doubt(80)
        if not any(found.mention.verb in _CERTAIN for found in users):
            subject.doubt(80)
        for found in users:
            mention = found.mention
            if mention.role == "emitter" and not mention.decorates:
                subject.stand(found.view.ground(mention.span, "emitter"))
                subject.add("emitters", function=joining.place(found), via=mention.verb)
            elif mention.role == "emitter":
                subject.stand(found.view.ground(mention.span, "emitter"))
                subject.add("emitters", function=joining.place(found), via=f"@{mention.verb}")
            elif mention.decorates:
                subject.stand(found.view.ground(mention.span, "handler"))
                subject.add("handlers", function=joining.place(found), via=f"@{mention.verb}")
            else:
                self._subscription(joining, subject, found)
        return subject.draft()

    def _subscription(self, joining: Joining, subject: Subject, found: Found) -> None:
        mention = found.mention
        if not mention.handler:
            subject.stand(found.view.ground(mention.span, "handler"))
            subject.add("handlers", function=joining.place(found), via=mention.verb)
            return
        name, grounding = joining.function(found, mention.handler)
        subject.stand(grounding)
        subject.stand(found.view.ground(mention.span, "handler" if grounding is None else "registration"))
        subject.add("handlers", function=name, via=mention.verb)


def _topics(call: Expr) -> Iterator[str]:
    given: list[Expr] = []
    for word in _WORDS:
        found = argument(call, word)
        if found is not None:
            given.append(found)
    if not given:
        verb = last(call.value) or call.items[0].value
        given = list(positional(call) if verb in ("subscribe", "psubscribe") else positional(call)[:1])
    for item in given:
        for part in item.items if item.kind in ("list", "tuple", "set") else (item,):
            name = pattern_of(part)
            if name:
                yield name
