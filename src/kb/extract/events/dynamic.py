"""Names that are made at run time: counted per file, so that what is not known is known to be missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kb.extract.events.facts import Blob, Mention, Seen
from kb.extract.events.joining import Found, Joining, Subject
from kb.extract.keys import qualified
from kb.model.artifacts import ArtifactDraft


class Dynamic:
    """One artifact per file that has mentions without a static name."""

    id = "dynamic"
    calls: frozenset[str] = frozenset()
    decorators: frozenset[str] = frozenset()
    own_decorators = None

    def worth(self, owner: str, verb: str, blob: Blob) -> bool:
        """Told from the callee's text."""
        return False

    def mentions(self, seen: Seen) -> Iterable[Mention]:
        """None: other families mark their own mentions."""
        return ()

    def module_mentions(self, blob: Blob) -> Iterable[Mention]:
        """None."""
        return ()

    def keys(self, mention: Mention, blob: Blob) -> Iterable[str]:
        """None."""
        return ()

    def link(self, joining: Joining) -> Iterator[ArtifactDraft]:
        """How many calls of which family name what they mean at run time, and where they stand."""
        dynamic = [mention for mention in joining.mentions if mention.dynamic]
        if not dynamic:
            return
        name = qualified(joining.file, "")
        subject = Subject("event", f"event:dynamic:{name}", f"names made at run time in {name}")
        subject.doubt(60)
        counts: dict[str, int] = {}
        for mention in dynamic:
            counts[mention.family] = counts.get(mention.family, 0) + 1
        subject.notes.update(sorted(counts.items()))
        for mention in dynamic:
            found = Found(mention, joining.file)
            subject.stand(joining.file.ground(mention.span, mention.role))
            subject.add("places", function=joining.place(found), family=mention.family, via=mention.verb)
        yield subject.draft()
