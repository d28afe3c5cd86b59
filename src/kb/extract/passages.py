"""Passages: each definition's own source, each module's header and each section of prose, to be found
by search where no extractor named them.

A passage's text is the words of its source, without comments, punctuation and layout, so that neither a
comment nor a formatter renews it; the lines as written are rendered from its spans.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from kb.extract.api import FactOutput, FileView, ParseView, WorldView
from kb.extract.prose import sections
from kb.extract.wording import words_of
from kb.model.artifacts import ArtifactDraft, Grounding, Link
from kb.structure.facts import Definition, SpanRef

_PROSE = frozenset({"markdown", "rst"})
_MOST_WORDS = 4000
"""Words of one definition that are kept: longer ones are tables of data."""
_MOST_GROUNDS = 40


class DefinitionWords(msgspec.Struct, frozen=True, array_like=True):
    """The words of a definition without those of the definitions inside it."""

    symbol_path: str
    words: str


class Section(msgspec.Struct, frozen=True, array_like=True):
    """A section of prose: the headings it stands under, and its paragraphs."""

    headings: tuple[str, ...]
    text: str
    span: SpanRef


class PassageFacts(msgspec.Struct, frozen=True, array_like=True):
    """What one blob holds for search."""

    header: str = ""
    definitions: tuple[DefinitionWords, ...] = ()
    """By symbol path in source order."""
    sections: tuple[Section, ...] = ()
    docstring: SpanRef | None = None
    """Of the module."""


class _Piece(NamedTuple):
    start: int
    end: int
    symbol_path: str


class PassagesExtractor:
    """Source and prose as search reads them."""

    id = "passages"
    version = 2
    dialects = frozenset({"python", "python-stub"}) | _PROSE

    def facts(self, parse: ParseView) -> FactOutput | None:
        """The words of every piece of the blob."""
        if parse.dialect in _PROSE:
            found = tuple(
                Section(
                    section.headings,
                    section.text,
                    parse.cite_lines(
                        section.start_line, section.end_line, "section", "/".join(section.headings)
                    ),
                )
                for section in sections(parse.source, parse.dialect)
            )
            return FactOutput(PassageFacts(sections=found)) if found else None
        pieces = _pieces(parse)
        header, *definitions = _own_words(parse.source, pieces)
        facts = PassageFacts(
            header=header,
            definitions=tuple(
                DefinitionWords(piece.symbol_path, words)
                for piece, words in zip(pieces[1:], definitions, strict=True)
            ),
            docstring=_module_docstring(parse),
        )
        return FactOutput(facts) if header or definitions else None

    def link(self, file: FileView, world: WorldView) -> Iterable[ArtifactDraft]:
        """One draft for each section, or for the module's header and each definition."""
        del world  # a passage says nothing about the rest of the snapshot
        facts = file.own(PassageFacts)
        if facts is None:
            return
        for section in facts.sections:
            yield _section(file, section)
        if facts.header and file.module.module_span >= 0:
            yield _header(file, facts)
        words: dict[str, list[str]] = {}
        for one in facts.definitions:
            words.setdefault(one.symbol_path, []).append(one.words)
        for definition in file.module.definitions:
            waiting = words.get(definition.symbol_path)
            if definition.kind != "lambda" and waiting:
                yield _definition(file, definition, waiting.pop(0))


def _pieces(parse: ParseView) -> list[_Piece]:
    """The whole file and every definition in it, by start; decorators belong to their definition."""
    return [_Piece(0, len(parse.source), ""), *(_Piece(*one) for one in parse.definition_ranges)]


def _own_words(source: bytes, pieces: list[_Piece]) -> list[str]:
    """For each piece the words of it that no piece inside it holds."""
    chunks: list[list[bytes]] = [[] for _ in pieces]
    open_pieces: list[int] = []
    at = 0

    def advance(to: int) -> None:
        nonlocal at
        if to > at:
            if open_pieces:
                chunks[open_pieces[-1]].append(source[at:to])
            at = to

    for number, piece in enumerate(pieces):
        while open_pieces and pieces[open_pieces[-1]].end <= piece.start:
            advance(pieces[open_pieces[-1]].end)
            open_pieces.pop()
        advance(piece.start)
        open_pieces.append(number)
    while open_pieces:
        advance(pieces[open_pieces[-1]].end)
        open_pieces.pop()
    return [words_of(b"\n".join(chunk).decode("utf-8", "replace"), _MOST_WORDS) for chunk in chunks]


def _module_docstring(parse: ParseView) -> SpanRef | None:
    if parse.module.docstring is None:
        return None
    for child in parse.root.named_children:
        if child.type == "comment":
            continue
        if child.type == "expression_statement" and child.named_child_count == 1:
            value = child.named_children[0]
            if value.type in ("string", "concatenated_string"):
                return parse.cite(value)
        return None
    return None


def _name(file: FileView, symbol_path: str = "") -> str:
    """`shop.orders.Order.total`, with the path in front of the symbol where the file is no module."""
    module = file.key_prefix + file.module_name if file.module_name else file.path
    return f"{module}.{symbol_path}" if symbol_path else module


def _header(file: FileView, facts: PassageFacts) -> ArtifactDraft:
    name = _name(file)
    return ArtifactDraft(
        kind="passage",
        logical_key=f"passage:{name}",
        title=f"{name} (module header)",
        body={"of": "module", "name": name},
        text=facts.header,
        groundings=_header_grounds(file, facts),
        links=(Link("passage_of", f"module:{name}"),) if file.module_name else (),
    )


def _header_grounds(file: FileView, facts: PassageFacts) -> tuple[Grounding, ...]:
    """Docstring, imports and assignments of the module; the module itself where it has none of them."""
    grounds = [] if facts.docstring is None else [file.ground(facts.docstring, "docstring")]
    statements = [item.span for item in file.module.imports if not item.scope]
    statements += [item.span for item in file.module.assignments if not item.scope]
    grounds += [file.ground_module(span, "source") for span in dict.fromkeys(statements)][:_MOST_GROUNDS]
    return tuple(grounds) or (file.ground_module(file.module.module_span, "source"),)


def _definition(file: FileView, definition: Definition, words: str) -> ArtifactDraft:
    name = _name(file, definition.symbol_path)
    if definition.kind == "class":
        # Its methods are passages of their own: an edit in one of them does not renew the class.
        grounds = [file.ground_module(definition.header, "source")]
        grounds += [
            file.ground_module(item.span, "source")
            for item in file.module.assignments
            if item.scope == definition.symbol_path
        ][:_MOST_GROUNDS]
    else:
        grounds = [file.ground_module(definition.span, "source")]
    return ArtifactDraft(
        kind="passage",
        logical_key=f"passage:{name}",
        title=f"{name} (source)",
        body={"of": definition.kind, "name": name},
        text=words,
        groundings=tuple(grounds),
        links=(Link("passage_of", f"symbol:{name}"),) if file.module_name else (),
    )


def _section(file: FileView, section: Section) -> ArtifactDraft:
    where = " / ".join(section.headings)
    return ArtifactDraft(
        kind="passage",
        logical_key=f"passage:{file.path}#{'/'.join(section.headings)}",
        title=f"{where} ({file.path})" if where else file.path,
        body={"of": "section", "headings": list(section.headings)},
        text=section.text,
        groundings=(file.ground(section.span, "source"),),
    )
