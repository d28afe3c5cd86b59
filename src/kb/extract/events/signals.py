"""Signals: Django's, blinker's and Flask's; receivers, connections and sends joined to the declaration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.extract.events.facts import Blob, Mention, Seen
from kb.extract.events.joining import Found, Joining, Subject
from kb.extract.expressions import argument, dotted, last, positional, text_of
from kb.extract.keys import qualified
from kb.model.artifacts import ArtifactDraft
from kb.structure.facts import Assignment, Expr

_SENDS = frozenset({"send", "send_robust", "asend", "asend_robust", "send_async"})
_CONSTRUCTORS = frozenset({"Signal", "ModelSignal", "NamedSignal", "AsyncSignal"})
_PACKAGES = (
    "django.db.models.signals.",
    "django.core.signals.",
    "django.test.signals.",
    "django.contrib.auth.signals.",
    "django.db.backends.signals.",
    "flask.signals.",
    "celery.signals.",
    "allauth.",
    "scrapy.signals.",
    "wagtail.signals.",
)
_FLASK = frozenset(
    [
        "request_started",
        "request_finished",
        "request_tearing_down",
        "template_rendered",
        "got_request_exception",
        "appcontext_pushed",
        "appcontext_popped",
        "appcontext_tearing_down",
        "message_flashed",
        "before_render_template",
    ]
)


def _loops_over(blob: Blob, owner: str) -> bool:
    return owner.isidentifier() and f"for {owner} in".encode() in blob.parse.source


def _looped(seen: Seen) -> Iterator[str]:
    """The names that a loop around the call goes through (`for signal in (post_save, post_delete):`)."""
    node, parse = seen.node, seen.blob.parse
    while node is not None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if node.type == "for_statement" and left is not None and left.text == seen.owner.encode():
            listed = parse.expr(right) if right is not None else None
            if listed is not None and listed.kind == "name":
                entry = seen.blob.assigned.get(listed.value)
                listed = entry.value if entry is not None else None
            if listed is not None and listed.kind in ("list", "tuple", "set"):
                yield from (item.value for item in listed.items if item.kind == "name")
            return
        node = node.parent


class Signals:
    """One artifact per signal; a signal of another distribution lives in the first file that uses it."""

    id = "signal"
    calls = _SENDS | {"connect", "disconnect"}
    decorators = frozenset({"receiver", "connect", "connect_via"})
    own_decorators = None

    def worth(self, owner: str, verb: str, blob: Blob) -> bool:
        """Told from the callee's text."""
        return bool(owner) and (blob.is_bound(owner) or _loops_over(blob, owner))

    def mentions(self, seen: Seen) -> Iterable[Mention]:
        """`@receiver(sig, ...)`, `@sig.connect`, `sig.connect(f)`, `sig.send(...)`."""
        if seen.verb == "receiver":
            given = argument(seen.expr, "signal", 0) if seen.expr.kind == "call" else None
            several = given.items if given is not None and given.kind in ("list", "tuple") else (given,)
            for signal in several:
                name = dotted(signal) if signal is not None and signal.kind == "name" else ""
                yield seen.mention(self.id, "handler", subject=name, dynamic=not name)
            return
        if not seen.owner:
            return
        if not seen.blob.is_bound(seen.owner):
            for name in _looped(seen):
                yield from self._mentioned(seen, name)
            return
        yield from self._mentioned(seen, seen.owner)

    def _mentioned(self, seen: Seen, signal: str) -> Iterator[Mention]:
        if seen.definition is not None:
            yield seen.mention(self.id, "handler", subject=signal)
        elif seen.verb in _SENDS:
            yield seen.mention(self.id, "emitter", subject=signal)
        else:
            handler = argument(seen.expr, "receiver", 0)
            role = "handler" if seen.verb == "connect" else "disconnect"
            name = dotted(handler) if handler is not None and handler.kind in ("name", "call") else ""
            yield seen.mention(self.id, role, subject=signal, handler=name)

    def module_mentions(self, blob: Blob) -> Iterable[Mention]:
        """None: declarations are in the module's facts."""
        return ()

    def keys(self, mention: Mention, blob: Blob) -> Iterable[str]:
        """`on:<name of the signal>`."""
        return (f"on:{blob.original(mention.subject)}",) if mention.subject else ()

    def link(self, joining: Joining) -> Iterator[ArtifactDraft]:
        """Signals declared here; then those of other distributions that are first mentioned here."""
        for entry in joining.file.module.assignments:
            if entry.name and self._declares(joining, entry):
                yield self._declared(joining, entry)
        done: set[str] = set()
        known = {
            entry.alias or entry.name or entry.module.partition(".")[0]
            for entry in joining.file.module.imports
        }
        known |= {entry.name for entry in joining.file.module.assignments if entry.name and not entry.scope}
        for mention in joining.own(self.id):
            if not mention.subject or mention.subject.partition(".")[0] not in known:
                continue
            found = Found(mention, joining.file)
            name = self._external(joining, found)
            if name and name not in done:
                done.add(name)
                yield from self._foreign(joining, name)

    def _declares(self, joining: Joining, entry: Assignment) -> bool:
        call = entry.value
        if call is None or call.kind != "call":
            return False
        if last(call.value) in _CONSTRUCTORS:
            return True
        made = joining.made(Found(Mention("", "", "", 0, entry.scope), joining.file), call.value)
        return last(call.value) == "signal" and made.startswith("blinker.")

    def _declared(self, joining: Joining, entry: Assignment) -> ArtifactDraft:
        symbol_path = ".".join(filter(None, (entry.scope, entry.name)))
        name = qualified(joining.file, symbol_path)
        subject = Subject("event", f"event:signal:{name}", f"signal {name}")
        given = text_of(positional(entry.value)[0]) if entry.value and positional(entry.value) else None
        if given and last(entry.value.value if entry.value else "") == "signal":
            subject.notes["signal_name"] = given
        subject.stand(joining.file.ground_module(entry.span, "declaration"))
        for found in joining.all_with(f"on:{entry.name}", (self.id,)):
            answer = joining.resolve(found, found.mention.subject)
            if answer.path == joining.file.path and answer.symbol_path == symbol_path:
                self._add(joining, subject, found)
        return subject.draft()

    def _external(self, joining: Joining, found: Found) -> str:
        if not found.mention.subject:
            return ""
        answer = joining.resolve(found, found.mention.subject)
        name = answer.qualified
        if answer.target != "external":
            # `app.on_after_configure` of `app = Celery()`: a signal that an object of a distribution has.
            made = joining.made(found, found.mention.subject)
            owner = made.partition("().")[0]
            return (
                made
                if owner.startswith("celery.") and made != owner and found.mention.role == "handler"
                else ""
            )
        flask = name.startswith("flask.") and last(name) in _FLASK
        certain = name.startswith(_PACKAGES) or flask or found.mention.verb == "receiver"
        return name if certain or self._looks(joining, found, name) else ""

    def _looks(self, joining: Joining, found: Found, name: str) -> bool:
        """Whether a name of a distribution that is not known is used as only signals are."""
        if "signals" in name.split("."):
            return True
        mention = found.mention
        if mention.role != "handler":
            return False
        return mention.decorates or (
            bool(mention.handler) and joining.function(found, mention.handler)[1] is not None
        )

    def _foreign(self, joining: Joining, name: str) -> Iterator[ArtifactDraft]:
        users = [
            found
            for found in joining.all_with(f"on:{last(name)}", (self.id,))
            if self._external(joining, found) == name
        ]
        if not users or users[0].view.path != joining.file.path:
            return
        subject = Subject("event", f"event:signal:{name}", f"signal {name}")
        subject.notes["declared_by"] = name.partition(".")[0]
        for found in users:
            self._add(joining, subject, found)
        yield subject.draft()

    def _add(self, joining: Joining, subject: Subject, found: Found) -> None:
        mention = found.mention
        sender = self._sender(joining, found)
        if mention.role == "emitter":
            subject.stand(found.view.ground(mention.span, "emitter"))
            subject.add("emitters", function=joining.place(found), via=mention.verb, sender=sender)
            return
        if mention.decorates:
            subject.stand(found.view.ground(mention.span, "handler"))
            handler = joining.place(found)
        elif mention.handler:
            subject.stand(found.view.ground(mention.span, "registration"))
            handler, grounding = joining.function(found, mention.handler)
            subject.stand(grounding)
        else:
            subject.stand(found.view.ground(mention.span, "registration"))
            handler = "not a name"
            subject.doubt(80)
        group = "disconnects" if mention.role == "disconnect" else "handlers"
        subject.add(group, function=handler, via=mention.verb, sender=sender)

    def _sender(self, joining: Joining, found: Found) -> str:
        call = found.mention.expr
        if call is None or call.kind != "call":
            return ""
        place = 0 if found.mention.verb == "connect_via" else None
        sender: Expr | None = argument(call, "sender", place)
        if sender is None:
            return ""
        name = dotted(sender) if sender.kind == "name" else ""
        if not name:
            return sender.value if sender.kind == "str" else "dynamic"
        if name.startswith(("self", "cls")):
            return name
        answer = joining.resolve(found, name)
        return answer.qualified or name
