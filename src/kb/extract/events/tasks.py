"""Tasks: Celery and its kin; where one is declared, sent, scheduled, or run in the background."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.extract.api import Resolution
from kb.extract.events import own_tasks, task_classes
from kb.extract.events.facts import Blob, Mention, Seen
from kb.extract.events.joining import Found, Joining, Subject
from kb.extract.expressions import dotted, keywords, last, pairs, positional, text_of, worded
from kb.extract.keys import qualified
from kb.model.artifacts import ArtifactDraft
from kb.structure.facts import Expr

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
_ALWAYS_SENDS = frozenset({"delay", "apply_async", "delay_on_commit"})
"""Sends also on something that only a run can tell; other verbs have too many meanings."""
_BY_FUNCTION = frozenset({"enqueue", "enqueue_at", "enqueue_in", "enqueue_once", "add_task", "add_job"})
_NO_JOBS = ("Queue", "Scheduler", "Broker", "Executor")
"""Ends of the names of classes that jobs are put into."""
_NEVER_BY_NAME = frozenset({"add_task"})
"""Takes functions; a text is something else's (a progress bar's description)."""
_BY_NAME = frozenset({"send_task", "enqueue_job", "signature"})
_REGISTERS = frozenset({"register_task"})
"""Celery's: makes a task of a class, or of an object of one."""
_NAMES = ("name", "actor_name", "task_name")
_OPTIONS = (
    *_NAMES,
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
    calls = _SENDS | _BY_FUNCTION | _BY_NAME | _REGISTERS
    decorators = _DECLARING
    own_decorators = own_tasks.NAMES

    def worth(self, owner: str, verb: str, blob: Blob) -> bool:
        """Told from the callee's text."""
        named = verb in _BY_NAME or verb in _BY_FUNCTION or verb in _ALWAYS_SENDS or verb in _REGISTERS
        return named or (bool(owner) and blob.is_bound(owner))

    def mentions(self, seen: Seen) -> Iterable[Mention]:
        """Declarations by decorator; sends by attribute, by function and by literal name."""
        if seen.definition is not None:
            options = keywords(seen.expr) if seen.expr.kind == "call" else {}
            given = next((options[word] for word in _NAMES if word in options), None)
            yield seen.mention(self.id, "declaration", key=text_of(given) or "")
        elif seen.verb in _REGISTERS:
            yield from task_classes.registration(seen, self.id)
        elif seen.verb in _SENDS:
            if seen.owner and seen.blob.is_bound(seen.owner):
                yield seen.mention(self.id, "emitter", subject=seen.owner)
            elif seen.verb in _ALWAYS_SENDS:
                yield seen.mention(self.id, "emitter", dynamic=True)
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
                if seen.verb not in _NEVER_BY_NAME:
                    yield seen.mention(self.id, "emitter", key=text_of(given) or "")
            elif seen.owner and seen.blob.is_bound(seen.owner):
                # `SyncJob.enqueue(...)`: a class of its own whose objects are the jobs, if it is a class.
                yield seen.mention(self.id, "emitter", subject=seen.owner, handler="class")
            elif seen.verb not in _NEVER_BY_NAME:
                yield seen.mention(self.id, "emitter", dynamic=True)

    def module_mentions(self, blob: Blob) -> Iterator[Mention]:
        """Task names in beat schedules (`beat_schedule`, `CELERY_BEAT_SCHEDULE`), and own decorators."""
        yield from own_tasks.wrappers(blob, self.id, _FRAMEWORKS, _DECLARING)
        yield from task_classes.named(blob, self.id)
        for entry in blob.parse.module.assignments:
            written = entry.name or (entry.target.value if entry.target is not None else "")
            if entry.value is not None and last(written).lower().endswith("beat_schedule"):
                for name in _scheduled(entry.value):
                    span = blob.parse.module_span(entry.span)
                    yield Mention(self.id, "emitter", "beat_schedule", span, entry.scope, key=name)

    def keys(self, mention: Mention, blob: Blob) -> Iterable[str]:
        """`on:<function>`, `task:<literal name>`, `task-declared:<literal name>`, those of `task_classes`."""
        if mention.role in task_classes.ROLES:
            return task_classes.keys(mention, blob)
        if mention.role == own_tasks.ROLE:
            return ()
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
                framework, wrapper = self._declaring(joining, Found(mention, joining.file))
                if framework:
                    declared.add(mention.scope)
                    yield self._declared(joining, mention, framework, wrapper)
        for made in task_classes.registered(joining, self.id):
            yield self._of_class(joining, made)
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

    def _declaring(self, joining: Joining, found: Found) -> tuple[str, Found | None]:
        """The framework of a declaration ("" if it is none) and the own decorator that leads to it."""
        wrapper = self._wrapper(joining, found)
        if wrapper is not None:
            return wrapper.mention.verb, wrapper
        return (self._framework(joining, found) if found.mention.verb in _DECLARING else ""), None

    def _wrapper(self, joining: Joining, found: Found) -> Found | None:
        """The project's own decorator that a declaration uses, None for a framework's own."""
        answer = joining.resolve(found, dotted(found.mention.expr))
        if answer.target != "internal" or answer.path is None:
            return None
        for other in joining.in_file(answer.path):
            mention = other.mention
            if (mention.family, mention.role, mention.scope) == (self.id, own_tasks.ROLE, answer.symbol_path):
                return other
        return None

    def _declared(
        self, joining: Joining, mention: Mention, framework: str, wrapper: Found | None
    ) -> ArtifactDraft:
        file = joining.file
        name = qualified(file, mention.scope)
        subject = Subject("event", f"event:task:{name}", f"task {name}")
        subject.notes["framework"] = framework.rstrip("?")
        if framework.endswith("?"):
            subject.doubt(70)
        if mention.expr is not None and mention.expr.kind == "call":
            options = keywords(mention.expr)
            subject.notes.update((word, worded(options[word])) for word in _OPTIONS if word in options)
        subject.stand(file.ground(mention.span, "declaration"))
        if wrapper is not None:
            subject.notes["through"] = joining.place(wrapper)
            subject.stand(wrapper.view.ground(wrapper.mention.span, "decorator"))
            subject.doubt(90)
        simple = last(mention.scope)
        for found in joining.all_with(f"on:{simple}", (self.id,)):
            if self._means(joining, found, file.path, mention.scope):
                self._send(joining, subject, found)
        own = {mention.key, "" if _renamed(mention, framework) else f"{file.module_name}.{mention.scope}"}
        for literal in filter(None, own):
            for found in joining.all_with(f"task:{literal}", (self.id,)):
                if found.mention.key == literal and found.mention.role == "emitter":
                    self._send(joining, subject, found)
        return subject.draft()

    def _of_class(self, joining: Joining, made: task_classes.Registered) -> ArtifactDraft:
        """A task that is a class: its registrations, and what sends it by name, by the class or by a variable."""
        subject = Subject("event", f"event:task:{made.qualified}", f"task {made.qualified}")
        subject.notes["framework"] = "celery"
        subject.notes["form"] = "a class"
        subject.doubt(made.confidence)
        if made.name:
            subject.notes["name"] = made.name
        elif made.untold:
            subject.notes["name"] = made.untold
            subject.doubt(60)
        if made.header is not None:
            subject.stand(made.header)
        else:
            subject.notes["declared"] = "not in this repository"
            subject.doubt(80)
        for found in made.calls:
            subject.stand(found.view.ground(found.mention.span, "registration"))
            subject.add("registrations", function=joining.place(found), via=found.mention.verb)
        places = [place for place in (made.place, *made.variables) if place is not None]
        for path, symbol_path in places:
            for found in joining.all_with(f"on:{last(symbol_path)}", (self.id,)):
                if self._means(joining, found, path, symbol_path):
                    self._send(joining, subject, found)
        literal = made.name or ("" if made.untold else made.qualified)
        for found in joining.all_with(f"task:{literal}", (self.id,)) if literal else ():
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
        """What is sent without a declaration that is known: functions, classes, tasks from outside."""
        done: set[str] = set()
        for mention in joining.own(self.id):
            if mention.role != "emitter" or not mention.subject:
                continue
            answer = joining.resolve(Found(mention, joining.file), mention.subject)
            name = self._sent(joining, mention, answer)
            if not name or name in done:
                continue
            done.add(name)
            simple = last(answer.symbol_path or answer.qualified or mention.subject)
            users = [
                found
                for found in joining.all_with(f"on:{simple}", (self.id,))
                if found.mention.role == "emitter"
                and self._sent(joining, found.mention, joining.resolve(found, found.mention.subject)) == name
            ]
            if users and users[0].view.path == joining.file.path:
                yield self._undeclared(joining, answer, name, users)

    def _sent(self, joining: Joining, mention: Mention, answer: Resolution) -> str:
        """Dotted name of what an emitter sends, "" if its declaration tells, or if it is no task."""
        if answer.target == "internal" and answer.path is not None and answer.symbol_path:
            place = (answer.path, answer.symbol_path)
            definition, view = joining.definition(*place), joining.view(answer.path)
            if view is None or (definition is not None and self._is_declared(joining, place)):
                return ""
            if task_classes.is_registered(joining, place, self.id):
                return ""
            if definition is None:  # a variable that keeps what a call registered
                return qualified(view, answer.symbol_path) if mention.verb in _ALWAYS_SENDS else ""
            if definition.kind == "class":
                is_job = mention.handler == "class" and not definition.name.endswith(_NO_JOBS)
                return qualified(view, answer.symbol_path) if is_job else ""
            known = mention.verb in _BY_FUNCTION and mention.handler != "class"
            return qualified(view, answer.symbol_path) if known or mention.verb in _ALWAYS_SENDS else ""
        if mention.verb in _ALWAYS_SENDS and answer.target in ("external", "unknown"):
            return answer.qualified or mention.subject
        return ""

    def _undeclared(
        self, joining: Joining, answer: Resolution, name: str, users: list[Found]
    ) -> ArtifactDraft:
        subject = Subject("event", f"event:task:{name}", f"background task {name}")
        inside = answer.target == "internal" and answer.path is not None and answer.symbol_path is not None
        definition = joining.definition(answer.path or "", answer.symbol_path or "") if inside else None
        view = joining.view(answer.path) if answer.path is not None and inside else None
        if inside and definition is None:
            subject.notes["declared"] = "by what a variable is bound to"
            subject.doubt(60)
        elif definition is None or view is None:
            subject.notes["declared"] = "not in this repository"
            subject.doubt(80 if answer.target == "external" else 60)
        else:
            subject.stand(view.ground_module(definition.header, "handler"))
            if definition.kind == "class":
                subject.notes["form"] = "a class whose objects are the tasks"
                subject.doubt(80)
            elif all(found.mention.verb in _ALWAYS_SENDS for found in users):
                subject.notes["declared"] = "by something that is not known to declare tasks"
                subject.doubt(70)
        for found in users:
            self._send(joining, subject, found)
        return subject.draft()

    def _is_declared(self, joining: Joining, place: tuple[str, str]) -> bool:
        """Whether a decorator declares the function a task, so that its own file is the task's home."""
        return any(
            found.mention.role == "declaration"
            and found.mention.scope == place[1]
            and bool(self._declaring(joining, found)[0])
            for found in joining.in_file(place[0])
            if found.mention.family == self.id
        )

    def _unknown(self, joining: Joining, name: str) -> Iterator[ArtifactDraft]:
        """A literal task name that nothing in the snapshot declares."""
        module, _, function = name.rpartition(".")
        path = joining.world.module(module) if module else None
        definition = joining.definition(path, function) if path and not path.endswith("/") else None
        other = ""
        if definition is not None and path is not None and self._is_declared(joining, (path, function)):
            other = self._other_name(joining, (path, function))
            if not other:
                return
        if any(
            found.mention.role == "declaration"
            for found in joining.all_with(f"task-declared:{name}", (self.id,))
            if found.mention.key == name
        ) or task_classes.is_name_of_registered(joining, name, self.id):
            return
        users = [f for f in joining.all_with(f"task:{name}", (self.id,)) if f.mention.key == name]
        if not users or users[0].view.path != joining.file.path:
            return
        key = (
            f"event:task:undeclared:{name}" if other else f"event:task:{name}"
        )  # the function has the other one
        subject = Subject("event", key, f"task {name}")
        subject.notes["declared"] = f"under another name: {other}" if other else "not in this repository"
        subject.doubt(80)
        for found in users:
            self._send(joining, subject, found)
        yield subject.draft()

    def _other_name(self, joining: Joining, place: tuple[str, str]) -> str:
        """The name that a function goes by instead of its module's, "" where it goes by that."""
        for found in joining.in_file(place[0]):
            mention = found.mention
            if (mention.family, mention.role, mention.scope) == (self.id, "declaration", place[1]):
                return mention.key if _renamed(mention, self._declaring(joining, found)[0]) else ""
        return ""


def _renamed(mention: Mention, framework: str) -> bool:
    """Whether a task has a name of its own, which is then the only one that Celery finds it by."""
    return bool(mention.key) and framework == "celery"


def _scheduled(value: Expr) -> Iterator[str]:
    for _, item in pairs(value) if value.kind == "dict" else ():
        if item is not None and item.kind == "dict":
            for key, task in pairs(item):
                if text_of(key) == "task" and text_of(task):
                    yield text_of(task) or ""
