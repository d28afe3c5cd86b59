"""Asks about one state and remembers what was asked; the only way from resolution to answers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from kb.extract.answers import SEPARATOR, Answers
from kb.extract.bindings import Binding, Stars, bases_of
from kb.extract.layout import Found, ModuleName
from kb.structure.facts import Expr

_MEMO = 60_000
AnswerT = TypeVar("AnswerT")


class Asking:
    """Look-ups with a record of their (kind, key) pairs.

    A derived answer may be remembered together with the look-ups that it took (`remember`), so that the
    next file that asks records the same ones without walking again.
    """

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.asked: dict[tuple[str, str], None] = {}
        self._memo: dict[Hashable, tuple[object, tuple[tuple[str, str], ...]]] = {}
        self._open: set[Hashable] = set()
        self._cyclic = False

    def take(self) -> Iterable[tuple[str, str]]:
        """What was asked since the last call; the record starts anew."""
        asked, self.asked = self.asked, {}
        return asked

    def remember(self, key: Hashable, find: Callable[[], AnswerT], on_cycle: AnswerT) -> AnswerT:
        """The answer of `find`, found once per `key`; `on_cycle` where it is asked while being found."""
        known = self._memo.get(key)
        if known is not None:
            self.asked.update(dict.fromkeys(known[1]))
            return known[0]  # type: ignore[return-value]  # the memo's key fixes the type
        if key in self._open:
            self.spoil()
            return on_cycle
        outer, self.asked = self.asked, {}
        self._open.add(key)
        try:
            found = find()
        finally:
            self._open.discard(key)
            inner, self.asked = self.asked, outer
            outer.update(inner)
        if not self._cyclic:
            if len(self._memo) >= _MEMO:
                self._memo.clear()
            self._memo[key] = (found, tuple(inner))
        elif not self._open:
            # What was found inside a cycle depends on where the walk began: it is not remembered.
            self._cyclic = False
        return found

    def spoil(self) -> None:
        """Says that what is being found depends on where the walk began: it must not be remembered."""
        self._cyclic = bool(self._open)

    def exists(self, path: str) -> bool:
        """Whether there is a file at `path`."""
        self.asked["exists", path] = None
        return self.answers.facts.has_path(path)

    def name(self, path: str) -> ModuleName | None:
        """The module name of a Python file."""
        self.asked["layout", path] = None
        return self.answers.name(path)

    def module(self, stem: str) -> Found | None:
        """The module that stands at a stem."""
        self.asked["module", stem] = None
        return self.answers.module(stem)

    def defining(self, stem: str) -> tuple[str, ...]:
        """Roots below which `stem` is a module or regular package."""
        self.asked["defining", stem] = None
        return self.answers.layout.defining(stem)

    def is_marked(self, root: str) -> bool:
        """Whether one of the roots that `defining` named is marked; covered by that look-up."""
        return self.answers.layout.is_marked(root)

    def binding(self, path: str, symbol_path: str) -> Binding | None:
        """What a name is bound to, for following it; its struct is no part of the answer."""
        self.asked["binding", path + SEPARATOR + symbol_path] = None
        return self.answers.binding(path, symbol_path)

    def definition(self, path: str, symbol_path: str) -> Binding | None:
        """What a name is bound to, the whole struct."""
        self.asked["definition", path + SEPARATOR + symbol_path] = None
        return self.answers.binding(path, symbol_path)

    def header(self, path: str, symbol_path: str) -> Binding | None:
        """What a name is bound to, for what its header says."""
        self.asked["header", path + SEPARATOR + symbol_path] = None
        return self.answers.binding(path, symbol_path)

    def modules_in(self, folder: str) -> list[str]:
        """Names of the Python files, packages and folders that hold such, directly in a folder."""
        self.asked["modules", folder] = None
        return self.answers.modules_in(folder)

    def bases(self, path: str, symbol_path: str) -> Sequence[Expr]:
        """Base classes as written."""
        self.asked["bases", path + SEPARATOR + symbol_path] = None
        binding = self.answers.binding(path, symbol_path)
        return () if binding is None else bases_of(binding)

    def stars(self, path: str) -> Stars:
        """Star imports of a module and whether it has a `__getattr__`."""
        self.asked["stars", path] = None
        return self.answers.stars(path)

    def exports(self, path: str, name: str) -> bool:
        """Whether a star import of the module takes `name`."""
        self.asked["exports", path] = None
        table = self.answers.table(path)
        return table is not None and table.exports(name)

    def lists(self, path: str) -> bool:
        """Whether the module has an `__all__` that can be read."""
        self.asked["exports", path] = None
        table = self.answers.table(path)
        return table is not None and table.facts.dunder_all is not None

    def names(self, path: str) -> tuple[list[str], Stars]:
        """Names that a star import takes from the module's own bindings, and its own star imports."""
        self.asked["names", path] = None
        table = self.answers.table(path)
        return ([], Stars((), has_getattr=False)) if table is None else (table.exported(), table.stars)

    def carried(self, source: str, key: str) -> bool:
        """Whether any file's fact row of `source` carries `key`."""
        self.asked["carried", source + SEPARATOR + key] = None
        return bool(self.answers.facts.paths_with_key(source, key))

    def who_has(self, source: str, key: str) -> Sequence[str]:
        """Paths of the files whose fact row of `source` carries `key`; the rows are part of the answer."""
        self.asked["inverse", source + SEPARATOR + key] = None
        return self.answers.who_has(source, key)

    def fact(self, path: str, source: str) -> tuple[bytes, bytes] | None:
        """A file's fact row of `source`."""
        self.asked["fact", path + SEPARATOR + source] = None
        return self.answers.facts.fact(path, source)
