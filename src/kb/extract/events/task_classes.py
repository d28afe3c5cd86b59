"""Celery's tasks that are classes: `app.register_task(Cls())`, and the names that the classes give themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kb.extract.events.facts import Blob, Mention, Seen
from kb.extract.events.joining import Found, Joining
from kb.extract.expressions import argument, brief, dotted, last, text_of
from kb.extract.keys import qualified
from kb.extract.reading import ClassSource
from kb.model.artifacts import Grounding

_CALL, _NAME = "registration", "class_name"
ROLES = frozenset({_CALL, _NAME})


class Registered(NamedTuple):
    """A class that is registered as a task, with every call that does so."""

    qualified: str
    calls: list[Found]
    """In path and source order; the first one's file is the task's home."""
    header: Grounding | None = None
    place: tuple[str, str] | None = None
    """Path and symbol path of the class, None where it is not in the repository."""
    variables: tuple[tuple[str, str], ...] = ()
    """What the calls' results are given to."""
    name: str = ""
    """The name that the class gives itself, "" for that of module and class."""
    untold: str = ""
    """The same, as written, where only a run can tell it."""
    confidence: int = 100


def registration(seen: Seen, family: str) -> Iterator[Mention]:
    """The class that a call of `register_task` is handed; made at run time where that is neither class nor object."""
    given = argument(seen.expr, "task", 0)
    written = dotted(given) if given is not None and given.kind in ("name", "call") else ""
    if given is not None and given.kind == "name" and seen.blob.is_bound(written):
        entry = seen.blob.assigned.get(written)  # `mail = Mail()`, then `register_task(mail)`
        if entry is not None and entry.value is not None and entry.value.kind == "call":
            yield _mention(seen, family, dotted(entry.value), also=written)
            return
    if written and seen.blob.is_bound(written):
        yield _mention(seen, family, written)
    elif any(entry.module.partition(".")[0] == "celery" for entry in seen.blob.imported.values()):
        yield seen.mention(family, "emitter", dynamic=True)


def _mention(seen: Seen, family: str, subject: str, also: str = "") -> Mention:
    bound = ""
    holder = seen.node.parent if seen.node is not None else None
    if holder is not None and holder.type == "assignment" and not seen.scope:
        left = holder.child_by_field_name("left")
        bound = (left.text or b"").decode("utf-8", "replace") if left is not None else ""
    return seen.mention(
        family, _CALL, subject=subject, bound=bound if bound.isidentifier() else "", handler=also
    )


def named(blob: Blob, family: str) -> Iterator[Mention]:
    """The literal name of each class that may be a task: below something that is called so, or with a `run`."""
    for definition in blob.parse.module.definitions:
        below = any(dotted(base).endswith("Task") for base in definition.bases)
        if definition.kind == "class" and definition.bases and (below or "run" in definition.members):
            entry = blob.members.get((definition.symbol_path, "name"))
            name = text_of(entry.value) if entry is not None else None
            if entry is not None and name:
                span = blob.parse.module_span(entry.span)
                yield Mention(family, _NAME, "name", span, definition.symbol_path, key=name)


def keys(mention: Mention, blob: Blob) -> Iterable[str]:
    """`task-registered:<class>`; `task-declared:<literal name>` of a class."""
    if mention.role == _NAME:
        return (f"task-declared:{mention.key}",)
    kept = [name for name in (mention.bound, mention.handler) if name]
    return (f"task-registered:{blob.original(mention.subject)}", *(f"task-kept:{name}" for name in kept))


def registered(joining: Joining, family: str) -> Iterator[Registered]:
    """The classes whose first registration stands in the file that is linked."""
    done: set[str] = set()
    for mention in joining.own(family):
        if mention.role != _CALL:
            continue
        found = Found(mention, joining.file)
        name = _class_of(joining, found)
        if not name or name in done:
            continue
        done.add(name)
        simple = last(name)
        calls = [
            other
            for other in joining.all_with(f"task-registered:{simple}", (family,))
            if other.mention.role == _CALL and _class_of(joining, other) == name
        ]
        if calls and calls[0].view.path == joining.file.path:
            yield _described(joining, name, calls)


def is_registered(joining: Joining, place: tuple[str, str], family: str) -> bool:
    """Whether a class is registered, or a variable keeps what a registration gives."""
    path, symbol_path = place
    for key in (f"task-registered:{last(symbol_path)}", f"task-kept:{symbol_path}"):
        for found in joining.all_with(key, (family,)):
            mention = found.mention
            if mention.role != _CALL or not _class_of(joining, found):
                continue
            if found.view.path == path and symbol_path in (mention.bound, mention.handler):
                return True
            answer = joining.resolve(found, mention.subject)
            if (answer.path, answer.symbol_path) == place:
                return True
    return False


def is_name_of_registered(joining: Joining, name: str, family: str) -> bool:
    """Whether a registered class goes by a literal name: its own, or that of module and class."""
    places = [
        (found.view.path, found.mention.scope)
        for found in joining.all_with(f"task-declared:{name}", (family,))
        if found.mention.role == _NAME and found.mention.key == name
    ]
    module, _, simple = name.rpartition(".")
    path = joining.world.module(module) if module else None
    source = joining.reader.class_at(path, simple) if path and not path.endswith("/") else None
    if path is not None and source is not None and _own_name(source) == ("", ""):
        places.append((path, simple))
    return any(is_registered(joining, place, family) for place in places)


def _class_of(joining: Joining, found: Found) -> str:
    """Qualified name of the class that a registration means, "" if it is none of Celery's."""
    mention = found.mention
    answer = joining.resolve(found, mention.subject)
    owner = joining.made(found, dotted(mention.expr))
    ours = owner.startswith("celery.")
    if answer.target != "internal" or answer.path is None or not answer.symbol_path:
        return answer.qualified if ours and answer.target == "external" else ""
    source, view = joining.reader.class_at(answer.path, answer.symbol_path), joining.view(answer.path)
    if source is None or view is None:
        return ""
    below = any(base.qualified.startswith("celery.") for base in source.ancestry())
    return qualified(view, answer.symbol_path) if ours or below else ""


def _described(joining: Joining, name: str, calls: list[Found]) -> Registered:
    variables = tuple(
        (found.view.path, kept)
        for found in calls
        for kept in (found.mention.bound, found.mention.handler)
        if kept
    )
    answer = joining.resolve(calls[0], calls[0].mention.subject)
    source = (
        joining.reader.class_at(answer.path, answer.symbol_path)
        if answer.path is not None and answer.symbol_path
        else None
    )
    view = joining.view(answer.path) if answer.path is not None else None
    if source is None or view is None or answer.path is None or not answer.symbol_path:
        return Registered(name, calls, variables=variables)
    given, untold = _own_name(source)
    header = view.ground_module(source.definition.header, "declaration")
    place = (answer.path, answer.symbol_path)
    return Registered(name, calls, header, place, variables, given, untold)


def _own_name(source: ClassSource) -> tuple[str, str]:
    """The literal name of a class or of the first of its bases with one; the name as written if it is not literal."""
    for known in (source, *(base.source for base in source.ancestry() if base.source is not None)):
        for entry in known.entries:
            if entry.name == "name" and entry.value is not None:
                text = text_of(entry.value)
                return (text, "") if text else ("", brief(entry.value))
    return "", ""
