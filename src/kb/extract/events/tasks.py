"""Tasks: Celery and its kin; where one is declared, sent, scheduled, or run in the background."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.extract.events.facts import Blob, Mention, Seen
from kb.extract.events.joining import Found, Joining, Subject
from kb.extract.expressions import brief, dotted, keywords, last, pairs, positional, text_of
from kb.extract.keys import qualified
from kb.model.artifacts import ArtifactDraft
from kb.structure.facts import Definition, Expr

_DECLARING = frozenset(
    [
        "task",
        "shared_task",
        "periodic_task",
        "actor",
        "job",
        "db_task",
        "db_periodic_task",
        "background",
        "cron",
    ]
)
_FRAMEWORKS = (
    "celery",
    "dramatiq",
    "huey",
    "rq",
    "django_rq",
    "procrastinate",
    "taskiq",
    "arq",
    "background_task",
    "saq",
    "django.tasks",
    "django_tasks",
    "apscheduler",
    "flask_rq2",
    "remoulade",
)
_SENDS = frozenset(
    [
        "delay",
        "apply_async",
        "apply",
        "s",
        "si",
        "send",
        "send_with_options",
        "kiq",
        "defer",
        "defer_async",
        "delay_on_commit",
        "aenqueue",
        "retry_async",
    ]
)
_BY_FUNCTION = frozenset({"enqueue", "enqueue_at", "enqueue_in", "add_task", "add_job"})
_BY_NAME = frozenset({"send_task", "enqueue_job", "signature"})
_OPTIONS = (
    "name",
    "queue",
    "queue_name",
    "bind",
    "max_retries",
    "rate_limit",
    "priority",
    "acks_late",
    "pass_context",
)


class Tasks:
    """One artifact per task, in the file that declares it; one sent by an unknown name where it is sent first."""

    id = "task"
    calls = _SENDS | _BY_FUNCTION | _BY_NAME
    decorators = _DECLARING

    def worth(self, owner: str, verb: str, blob: Blob) -> bool:
        """Told from the callee's text."""
        return verb in _BY_NAME or verb in _BY_FUNCTION or (bool(owner) and blob.is_bound(owner))

    def mentions(self, seen: Seen) -> Iterable[Mention]:
        """Declarations by decorator; sends by attribute, by function and by literal name."""
        if seen.definition is not None:
            named = text_of(keywords(seen.expr).get("name")) if seen.expr.kind == "call" else None
            yield seen.mention(self.id, "declaration", key=named or "")
        elif seen.verb in _SENDS:
            if seen.owner and seen.blob.is_bound(seen.owner):
                yield seen.mention(self.id, "emitter", subject=seen.owner)
        elif seen.verb in _BY_NAME:
            name = text_of(positional(seen.expr)[0]) if positional(seen.expr) else None
            if name or seen.verb != "signature":
                yield seen.mention(self.id, "emitter", key=name or "", dynamic=name is None)
        else:
            given = positional(seen.expr)[0] if positional(seen.expr) else None
            target = dotted(given) if given is not None and given.kind == "name" else ""
            if target and seen.blob.is_bound(target):
                yield seen.mention(self.id, "emitter", subject=target)
            elif text_of(given):
                yield seen.mention(self.id, "emitter", key=text_of(given) or "")

    def module_mentions(self, blob: Blob) -> Iterator[Mention]:
        """Task names in beat schedules (`beat_schedule`, `CELERY_BEAT_SCHEDULE`)."""
        for entry in blob.parse.module.assignments:
            written = entry.name or (entry.target.value if entry.target is not None else "")
            if entry.value is not None and last(written).lower().endswith("beat_schedule"):
                for name in _scheduled(entry.value):
                    span = blob.parse.module_span(entry.span)
                    yield Mention(self.id, "emitter", "beat_schedule", span, entry.scope, key=name)

    def keys(self, mention: Mention, blob: Blob) -> Iterable[str]:
        """`on:<function>`, `task:<literal name>`, `task-declared:<literal name>`."""
        if mention.role == "declaration":
            return (f"task-declared:{mention.key}",) if mention.key else ()
        if mention.key:
            return (f"task:{mention.key}",)
        return (f"on:{blob.original(mention.subject)}",) if mention.subject else ()

    def link(self, joining: Joining) -> Iterator[ArtifactDraft]:
        """Tasks declared here, functions run in the background that are first sent here, unknown names."""
        declared: set[str] = set()
        for mention in joining.own(self.id):
            if mention.role == "declaration" and mention.scope not in declared:
                framework = self._framework(joining, Found(mention, joining.file))
                if framework:
                    declared.add(mention.scope)
                    yield self._declared(joining, mention, framework)
        yield from self._background(joining)
        for name in dict.fromkeys(m.key for m in joining.own(self.id) if m.role == "emitter" and m.key):
            yield from self._unknown(joining, name)

    def _framework(self, joining: Joining, found: Found) -> str:
        """The task framework of a declaration, with `?` where it is a guess; "" if it is none."""
        name = dotted(found.mention.expr)
        made = joining.made(found, name)
        for framework in _FRAMEWORKS:
            if made == framework or made.startswith(framework + "."):
                return framework
        answer = joining.resolve(found, name)
        owner = last(name.rpartition(".")[0]).lower()
        looks = any(word in owner for word in ("celery", "huey", "broker", "app", "queue", "worker"))
        return f"{owner}?" if answer.target in ("unknown", "internal") and owner and looks else ""

    def _declared(self, joining: Joining, mention: Mention, framework: str) -> ArtifactDraft:
        file = joining.file
        name = qualified(file, mention.scope)
        subject = Subject("event", f"event:task:{name}", f"task {name}")
        subject.notes["framework"] = framework.rstrip("?")
        if framework.endswith("?"):
            subject.doubt(70)
        if mention.expr is not None and mention.expr.kind == "call":
            options = keywords(mention.expr)
            subject.notes.update((word, brief(options[word])) for word in _OPTIONS if word in options)
        subject.stand(file.ground(mention.span, "declaration"))
        simple = last(mention.scope)
        for found in joining.all_with(f"on:{simple}", (self.id,)):
            if self._means(joining, found, file.path, mention.scope):
                self._send(joining, subject, found)
        for literal in filter(None, {mention.key, f"{file.module_name}.{mention.scope}"}):
            for found in joining.all_with(f"task:{literal}", (self.id,)):
                if found.mention.key == literal and found.mention.role == "emitter":
                    self._send(joining, subject, found)
        return subject.draft()

    def _means(self, joining: Joining, found: Found, path: str, symbol_path: str) -> bool:
        if found.mention.role != "emitter" or not found.mention.subject:
            return False
        answer = joining.resolve(found, found.mention.subject)
        return answer.path == path and answer.symbol_path == symbol_path

    def _send(self, joining: Joining, subject: Subject, found: Found) -> None:
        subject.stand(found.view.ground(found.mention.span, "emitter"))
        subject.add("emitters", function=joining.place(found), via=found.mention.verb)

    def _background(self, joining: Joining) -> Iterator[ArtifactDraft]:
        """Functions handed to `add_task`, `enqueue` or `add_job` that no decorator declares."""
        done: set[tuple[str, str]] = set()
        for mention in joining.own(self.id):
            if mention.verb not in _BY_FUNCTION or not mention.subject:
                continue
            answer = joining.resolve(Found(mention, joining.file), mention.subject)
            if answer.target != "internal" or answer.path is None or not answer.symbol_path:
                continue
            place = (answer.path, answer.symbol_path)
            definition = joining.definition(*place)
            if definition is None or place in done or self._is_declared(definition):
                continue
            done.add(place)
            users = [
                found
                for found in joining.all_with(f"on:{definition.name}", (self.id,))
                if found.mention.verb in _BY_FUNCTION and self._means(joining, found, *place)
            ]
            view = joining.view(answer.path)
            if view is None or not users or users[0].view.path != joining.file.path:
                continue
            name = qualified(view, answer.symbol_path)
            subject = Subject("event", f"event:task:{name}", f"background task {name}")
            subject.stand(view.ground_module(definition.header, "handler"))
            for found in users:
                self._send(joining, subject, found)
            yield subject.draft()

    def _is_declared(self, definition: Definition) -> bool:
        return any(last(dotted(decorator.expr)) in _DECLARING for decorator in definition.decorators)

    def _unknown(self, joining: Joining, name: str) -> Iterator[ArtifactDraft]:
        """A literal task name that nothing in the snapshot declares."""
        module, _, function = name.rpartition(".")
        path = joining.world.module(module) if module else None
        definition = joining.definition(path, function) if path and not path.endswith("/") else None
        if definition is not None and self._is_declared(definition):
            return
        if joining.holders(f"task-declared:{name}"):
            return
        users = [f for f in joining.all_with(f"task:{name}", (self.id,)) if f.mention.key == name]
        if not users or users[0].view.path != joining.file.path:
            return
        subject = Subject("event", f"event:task:{name}", f"task {name}")
        subject.notes["declared"] = "not in this repository"
        subject.doubt(80)
        for found in users:
            self._send(joining, subject, found)
        yield subject.draft()


def _scheduled(value: Expr) -> Iterator[str]:
    for _, item in pairs(value) if value.kind == "dict" else ():
        if item is not None and item.kind == "dict":
            for key, task in pairs(item):
                if text_of(key) == "task" and text_of(task):
                    yield text_of(task) or ""
