"""Links files: each extractor's drafts, checked, sealed, with the look-ups that they took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kb.errors import GroundingError, IntegrityError
from kb.extract.answers import Answers
from kb.extract.api import Extractor
from kb.extract.asking import Asking
from kb.extract.factstore import FactStore
from kb.extract.layout import Layout
from kb.extract.resolution import Resolver
from kb.extract.world import World
from kb.identity.artifacts import seal_draft
from kb.model.artifacts import SHARED, Artifact, ArtifactDraft, Link, LinkedFile


class Linker:
    """Links the files of one state; keeps what it decoded and resolved between files.

    Args:
        extractors: what to link with.
        facts: the state.
        layout: names of its modules; made from `facts` where it is not given.
    """

    def __init__(
        self, extractors: Sequence[Extractor], facts: FactStore, layout: Layout | None = None
    ) -> None:
        self._extractors = extractors
        self._facts = facts
        self._resolver = Resolver(Asking(Answers(facts, layout or Layout(facts))))

    def link(self, path: str, only: frozenset[str] | None = None) -> list[LinkedFile]:
        """What each extractor that reads the file's dialect yields for it, in the extractors' order.

        Args:
            path: the file.
            only: ids of the extractors to link with; all of them where it is None.

        Raises:
            GroundingError: a draft stands on no span, or on one that is not of the snapshot.
        """
        dialect = self._facts.dialect(path)
        if dialect is None:
            return []
        return [
            self._link(path, extractor)
            for extractor in self._extractors
            if dialect in extractor.dialects and (only is None or extractor.id in only)
        ]

    def _link(self, path: str, extractor: Extractor) -> LinkedFile:
        self._resolver.ask.take()  # an extractor that failed half-way leaves nothing behind
        world = World(self._resolver, path, extractor.id)
        linked = LinkedFile(path, extractor.id)
        counts: dict[tuple[str, str], int] = {}
        for yielded in extractor.link(world.home(), world):
            draft = yielded if _is_clean(yielded.logical_key) else _cleaned(yielded)
            draft = _distinct(_once_grounded(draft), counts)
            _check_grounds(draft, world, path, extractor.id)
            linked.artifacts.append(_sealed(draft, extractor))
        linked.lookups = world.lookups()
        return linked


def _distinct(draft: ArtifactDraft, counts: dict[tuple[str, str], int]) -> ArtifactDraft:
    """The draft with `~n` on its key where earlier drafts of the file have the same one."""
    kind, key = draft.kind, draft.logical_key
    count = counts.get((kind, key), 0) + 1
    while count > 1 and (kind, f"{key}~{count}") in counts:
        count += 1
    counts[kind, key] = count
    if count > 1:
        key = f"{key}~{count}"
        counts[kind, key] = 1
    # The mark is the store's, for keys that several files claim.
    key = key.replace(SHARED, "~%7E")
    return draft if key == draft.logical_key else replace(draft, logical_key=key)


def _check_grounds(draft: ArtifactDraft, world: World, path: str, extractor: str) -> None:
    if not draft.groundings:
        raise GroundingError(
            f"{draft.kind} {draft.logical_key!r} of extractor {extractor} in {path} stands on no span",
            logical_key=draft.logical_key,
            extractor=extractor,
            path=path,
        )
    for grounding in draft.groundings:
        if (grounding.path, grounding.span_id, grounding.n) not in world.issued:
            raise GroundingError(
                f"{draft.kind} {draft.logical_key!r} of extractor {extractor} in {path} stands on a span "
                f"that its file views did not give",
                logical_key=draft.logical_key,
                extractor=extractor,
                path=path,
            )


def _once_grounded(draft: ArtifactDraft) -> ArtifactDraft:
    """The draft without double groundings."""
    if len(draft.groundings) < 2:
        return draft
    groundings = tuple(dict.fromkeys(draft.groundings))
    return draft if len(groundings) == len(draft.groundings) else replace(draft, groundings=groundings)


def _sealed(draft: ArtifactDraft, extractor: Extractor) -> Artifact:
    """The draft's artifact, with what neither UTF-8 nor the database can hold replaced by U+FFFD.

    Sealing encodes everything that is said, so it is what finds out; next to no draft needs cleaning.
    """
    try:
        artifact = seal_draft(draft, extractor.id, extractor.version)
    except (UnicodeEncodeError, IntegrityError):
        return seal_draft(_cleaned(draft), extractor.id, extractor.version)
    if b"\\u0000" in artifact.body_json or not _is_without_nul(draft):
        return seal_draft(_cleaned(draft), extractor.id, extractor.version)
    return artifact


def _is_without_nul(draft: ArtifactDraft) -> bool:
    for _, target in draft.links:
        if "\0" in target:
            return False
    return "\0" not in draft.text and "\0" not in draft.title


def _is_clean(text: str) -> bool:
    return "\0" not in text and (text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text))


def _cleaned(draft: ArtifactDraft) -> ArtifactDraft:
    """The draft with what neither UTF-8 nor the database can hold replaced by U+FFFD."""
    return replace(
        draft,
        logical_key=_clean_text(draft.logical_key),
        title=_clean_text(draft.title),
        body=_clean(dict(draft.body)),
        text=_clean_text(draft.text),
        links=tuple(Link(_clean_text(link.relation), _clean_text(link.target_key)) for link in draft.links),
    )


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, dict):
        return {_clean_text(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value


def _clean_text(text: str) -> str:
    kept = ("�" if char == "\0" or "\ud800" <= char <= "\udfff" else char for char in text)
    return "".join(kept)
