"""The protocol of an extractor: what it is given, what it yields. Third parties implement this.

An extractor has an `id`, a `version`, the dialects it reads, and two pure steps: `facts(parse)` reads
one blob and never sees its path; `link(file, world)` resolves one file's facts against the rest of
the snapshot and yields drafts. `world` answers from facts and paths only, and records each look-up,
so that a later commit re-links exactly the files for which an answer changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec
import tree_sitter

from kb.model.artifacts import ArtifactDraft, Grounding
from kb.structure.facts import Expr, ModuleFacts, SpanRef


class ParseView(Protocol):
    """One parsed blob, as `facts` sees it. Implemented by `kb.structure.parse.Parse`."""

    source: bytes
    """UTF-8; what the tree's offsets index (a declared other encoding was decoded first)."""
    dialect: str
    module: ModuleFacts
    """Facts that every extractor may build on; empty for a dialect that is not Python."""

    @property
    def root(self) -> tree_sitter.Node:
        """Root of the tree. For a dialect without a grammar use `source`: this raises ValueError."""
        ...

    @property
    def calls(self) -> Sequence[tree_sitter.Node]:
        """Every `call` node of the file in source order, collected while fingerprinting."""
        ...

    @property
    def definition_ranges(self) -> Sequence[tuple[int, int, str]]:
        """(start byte, end byte, symbol path) of every definition, decorators included, by (start, -end)."""
        ...

    @property
    def classes(self) -> Sequence[tuple[str, tree_sitter.Node]]:
        """(symbol path, `class_definition`) of every class, in source order."""
        ...

    def scope_of(self, node: tree_sitter.Node) -> str:
        """symbol_path of the innermost definition that holds the node; "" at module level."""
        ...

    def expr(self, node: tree_sitter.Node) -> Expr:
        """The node as an `Expr`."""
        ...

    def cite(self, node: tree_sitter.Node) -> SpanRef:
        """A reference to the node as a span, adding it to the blob's spans where it is not one yet."""
        ...

    def cite_lines(self, start_line: int, end_line: int, kind: str, symbol_path: str) -> SpanRef:
        """A reference to whole lines (1-based, inclusive) as a text span: for files without a grammar."""
        ...

    def module_span(self, ref: SpanRef) -> SpanRef:
        """A reference of `module`'s span table, carried over into the table of this extractor's row."""
        ...


class FactOutput(msgspec.Struct, frozen=True):
    """What `facts` returns: the struct to store, and the keys that inverse look-ups find it by."""

    fact: msgspec.Struct
    keys: tuple[str, ...] = ()


class FileView(Protocol):
    """One file of the snapshot, as `link` sees it."""

    path: str
    dialect: str

    @property
    def module_name(self) -> str:
        """Dotted name by the layout; "" where the file is no module (or not Python)."""
        ...

    @property
    def is_package(self) -> bool:
        """The file is an `__init__`."""
        ...

    @property
    def key_prefix(self) -> str:
        """Empty, or, where two roots (or a stub and its source) define one dotted name, what to set before
        the dotted name in logical keys (`<root>:`, `stub:`...), so that they stay unique."""
        ...

    @property
    def module(self) -> ModuleFacts:
        """The file's `module` facts; empty where it is not Python."""
        ...

    def own(self, kind: type[Any]) -> Any | None:
        """This extractor's fact for the file, decoded as `kind`; None where it stored none."""
        ...

    def ground(self, ref: SpanRef, role: str) -> Grounding:
        """A grounding on a span of this extractor's own fact row."""
        ...

    def ground_module(self, ref: SpanRef, role: str) -> Grounding:
        """A grounding on a span of the file's `module` facts."""
        ...


class Resolution(msgspec.Struct, frozen=True):
    """What a dotted name means at some place, and how sure that is."""

    target: str
    """`internal` | `stdlib` | `external` | `unknown`."""
    qualified: str
    """Full dotted name of what was found (`shop.orders.Order`), the best known one otherwise."""
    how: str = "exact"
    """`exact` | `approximate` | `dynamic` | `unresolved`."""
    path: str | None = None
    """File of the definition where it is internal."""
    kind: str = ""
    """`module` | `class` | `function` | `method` | `lambda` | `assignment` | `import`..., or ""."""
    symbol_path: str = ""
    """Inside `path`; "" for a module."""
    distribution: str | None = None
    """For an external one: the distribution that the project declares for it, if it does. Filled by
    `resolve_import`; elsewhere ask `World.distribution`."""
    confidence: int = 100
    spelled: str = ""
    """The absolute dotted name by which it was reached, before re-exports were followed
    (`django.db.models.Model` for `django.db.models.base.Model`)."""
    key: str = ""
    """Logical key of the module's or definition's artifact where it is internal, for links."""


class WorldView(Protocol):
    """The rest of the snapshot. Every method records its look-up with a digest of the answer."""

    def module(self, dotted: str) -> str | None:
        """Path of the file that is module `dotted` (a package's `__init__`), None if there is none.

        For a namespace package (a folder without `__init__` that holds modules) returns the folder's
        path with a trailing slash.
        """
        ...

    def exists(self, path: str) -> bool:
        """Whether the snapshot has a file at `path`."""
        ...

    def definition(self, path: str, symbol_path: str) -> tuple[str, Any] | None:
        """What `symbol_path` is bound to in the file at `path`: ("class" | "function" | ..., the
        `Definition`), ("assignment", the `Assignment`), ("import", the `Import`), last binding wins
        (a conditional or `except ImportError` binding does not hide an unconditional one); None when
        nothing binds it. The digest covers the struct."""
        ...

    def header(self, path: str, symbol_path: str) -> tuple[str, Any] | None:
        """As `definition`, for what headers say: docstring, members and body are not part of the digest,
        and only the header's span may be grounded on."""
        ...

    def modules_in(self, folder: str) -> Sequence[str]:
        """Names of the Python files, packages and folders that hold such, directly in a folder, sorted; those of
        folders end with `/`."""
        ...

    def loaded(self, path: str, imported: Any) -> Resolution | None:
        """The internal module that an `Import` of the file at `path` loads: the submodule where the name
        is one, else the module that the name is taken from; None where it is not of this repository."""
        ...

    def file(self, path: str) -> FileView | None:
        """The file at `path`, for grounding on its spans after `definition` named one. Reading
        anything else of its facts without a look-up is an error of the extractor."""
        ...

    def resolve(self, path: str, dotted: str, scope: str = "") -> Resolution:
        """What `dotted` (as written in file `path` inside `scope`) means: through local definitions,
        imports, re-exports, star imports and submodules, each step a recorded look-up."""
        ...

    def resolve_import(self, path: str, imported: Any) -> Resolution:
        """What one `Import` of the file at `path` imports."""
        ...

    def bases(self, path: str, symbol_path: str) -> Sequence[Resolution]:
        """Resolved base classes of a class, in order; each a look-up."""
        ...

    def ancestors(self, path: str, symbol_path: str) -> Sequence[Resolution]:
        """Every class that a class derives from, depth first, as far as is known; cycles tolerated."""
        ...

    def member(self, path: str, symbol_path: str, name: str) -> Resolution | None:
        """What attribute `name` of a class is, in its own body or inherited; None where it has none."""
        ...

    def is_subclass(self, path: str, symbol_path: str, qualified: frozenset[str]) -> str | None:
        """The first of `qualified` that the class at (path, symbol_path) derives from, walking base
        classes through the snapshot (cycles tolerated); None if it does not, as far as is known."""
        ...

    def attribute(self, path: str, name: str) -> Resolution | None:
        """What attribute `name` of the module at `path` is: bound there, a submodule, or by a star."""
        ...

    def exported_names(self, path: str) -> Sequence[str]:
        """Names that the module at `path` lists in `__all__`, else binds without an underscore."""
        ...

    def star_names(self, path: str, imported: Any) -> Sequence[str] | None:
        """Names that a star import of the file at `path` binds, sorted; None where that cannot be told."""
        ...

    def who_has(self, source: str, key: str) -> Sequence[str]:
        """Paths of the files whose fact row of `source` carries `key`, sorted. The digest covers the
        paths and their fact rows."""
        ...

    def facts(self, path: str, source: str, kind: type[Any]) -> tuple[Any, FileView] | None:
        """Another file's fact row of `source` with a view that grounds on it; a look-up of its own."""
        ...

    def distribution(self, top_level: str) -> str | None:
        """Distribution that the project declares for an external top-level module, if it does."""
        ...


class Extractor(Protocol):
    """One kind of knowledge, from facts to drafts."""

    id: str
    version: int
    dialects: frozenset[str]

    def facts(self, parse: ParseView) -> FactOutput | None:
        """What one blob says; None when it says nothing of interest (nothing is stored)."""
        ...

    def link(self, file: FileView, world: WorldView) -> Iterable[ArtifactDraft]:
        """The drafts that this file is home to."""
        ...
