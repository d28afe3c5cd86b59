"""Validators: methods that pydantic, SQLAlchemy and attrs run when a field gets its value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.extract.events.facts import Blob, Mention, Seen
from kb.extract.events.joining import Found, Joining, Subject
from kb.extract.expressions import dotted, keywords, last, positional, text_of, worded
from kb.extract.keys import qualified
from kb.extract.reading import ClassSource
from kb.model.artifacts import ArtifactDraft

_PYDANTIC = frozenset({"field_validator", "validator", "model_validator", "root_validator"})
_WHOLE = frozenset({"model_validator", "root_validator"})


class Validators:
    """One artifact per validating method, standing on the method and the fields that it checks."""

    id = "validator"
    calls: frozenset[str] = frozenset()
    decorators = _PYDANTIC | {"validates"}
    own_decorators = None

    def worth(self, owner: str, verb: str, blob: Blob) -> bool:
        """Told from the callee's text."""
        return False

    def mentions(self, seen: Seen) -> Iterable[Mention]:
        """`@field_validator("a")`, `@model_validator(mode="after")`, `@validates("a")`, `@x.validator`."""
        if seen.definition is None or seen.definition.kind != "method":
            return
        if seen.verb == "validator" and seen.owner and not seen.blob.is_bound(seen.owner):
            yield seen.mention(self.id, "handler", subject="attrs", key=seen.owner)
        elif seen.expr.kind == "call" or seen.verb in _WHOLE:
            yield seen.mention(self.id, "handler", subject=dotted(seen.expr))

    def module_mentions(self, blob: Blob) -> Iterable[Mention]:
        """None."""
        return ()

    def keys(self, mention: Mention, blob: Blob) -> Iterable[str]:
        """None: a validator stands beside what it validates."""
        return ()

    def link(self, joining: Joining) -> Iterator[ArtifactDraft]:
        """Every validator of the file."""
        for mention in joining.own(self.id):
            found = Found(mention, joining.file)
            framework, sure = self._framework(joining, found)
            if framework:
                yield self._draft(joining, found, framework, sure)

    def _framework(self, joining: Joining, found: Found) -> tuple[str, int]:
        if found.mention.subject == "attrs":
            return "attrs", 100
        answer = joining.resolve(found, found.mention.subject)
        package = answer.qualified.partition(".")[0]
        if answer.target == "external":
            known = {"pydantic": "pydantic", "sqlalchemy": "sqlalchemy", "sqlmodel": "sqlalchemy"}
            return known.get(package, ""), 100
        if found.mention.verb == "validates":
            return "", 0
        # Inside pydantic's own sources the decorators are internal; elsewhere such a name is a guess.
        return "pydantic", 100 if package == "pydantic" else 70

    def _draft(self, joining: Joining, found: Found, framework: str, sure: int) -> ArtifactDraft:
        mention, file = found.mention, found.view
        owner = mention.scope.rpartition(".")[0]
        name = qualified(file, mention.scope)
        subject = Subject("event", f"event:validator:{name}", f"validator {name}")
        subject.doubt(sure)
        subject.notes["framework"] = framework
        subject.notes["validates"] = qualified(file, owner)
        call = mention.expr
        fields: list[str] = []
        if mention.key:
            fields = [mention.key]
        elif call is not None and call.kind == "call" and mention.verb not in _WHOLE:
            given = positional(call)
            fields = [text for text in map(text_of, given) if text]
            if len(fields) < len(given):
                subject.notes["resolution"] = "some field names are made at run time"
                subject.doubt(60)
        subject.notes["fields"] = fields or ["the whole model"]
        if call is not None and call.kind == "call":
            subject.notes.update((word, worded(value)) for word, value in keywords(call).items())
        subject.stand(file.ground(mention.span, "handler"))
        for field in fields:
            self._stand_on_field(joining, subject, owner, field)
        subject.add("handlers", function=name, via=last(dotted(call)) if call is not None else "")
        subject.link("validates", f"entity:{qualified(file, owner)}")
        return subject.draft()

    def _stand_on_field(self, joining: Joining, subject: Subject, owner: str, field: str) -> None:
        source = joining.reader.class_at(joining.file.path, owner)
        if source is None or field == "*":
            return
        classes: list[ClassSource] = [source, *(b.source for b in source.ancestry() if b.source is not None)]
        for candidate in classes:
            for entry in candidate.entries:
                view = joining.view(candidate.path)
                if entry.name == field and view is not None:
                    subject.stand(view.ground_module(entry.span, "field"))
                    return
        subject.add("not_found", field=field)
