"""Finds the file that an absolute or relative module name means at some place."""

from __future__ import annotations

from typing import NamedTuple

from kb.extract.asking import Asking
from kb.extract.distributions import candidates
from kb.extract.layout import Found, ModuleName, join, parent
from kb.extract.stdlib import STDLIB


class Place(NamedTuple):
    """Where a top-level name was found, or that it is not of this repository."""

    target: str
    """`internal` | `stdlib` | `external`."""
    root: str = ""
    how: str = "exact"
    confidence: int = 100


_STDLIB = Place("stdlib")
_EXTERNAL = Place("external")


class Finder:
    """Places of module names.

    An absolute name is looked for as Python would with every marked root on its path: the importing
    file's own top-level package, the standard library, the file's siblings where it is a script, then the
    roots that define the name: the file's own, those above it, marked ones; last, namespace packages.
    """

    def __init__(self, asking: Asking) -> None:
        self._ask = asking

    def place(self, path: str, dotted: str) -> Place:
        """Where the first part of an absolute module name lives, seen from the file at `path`."""
        name = self._ask.name(path)
        if name is None:  # a manifest or the like: what stands beside it comes first
            name = ModuleName("", is_package=False, key_prefix="", root=parent(path), loose=True)
        folder = parent(path) if name.loose else ""
        own = name.dotted.partition(".")[0] if "." in name.dotted or name.is_package else ""
        key = ("place", name.root, folder, own, name.in_package, dotted)
        return self._ask.remember(key, lambda: self._place(name, folder, own, dotted), _EXTERNAL)

    def _place(self, name: ModuleName, folder: str, own: str, dotted: str) -> Place:
        top, _, rest = dotted.partition(".")
        if top == own and (name.in_package or self._stands(name.root, dotted)):
            return Place("internal", name.root)
        if top in STDLIB:
            # `from test.helpers import x` cannot mean the standard library where only a root has that module.
            if rest and name.root in self._ask.defining(top) and self._stands(name.root, dotted):
                return Place("internal", name.root)
            return _STDLIB
        if name.loose:
            sibling = self._ask.module(join(folder, top))
            if sibling is not None and not sibling.path.endswith("/"):
                return Place("internal", folder)
        roots = self._ask.defining(top)
        if roots:
            return self._choose(roots, name.root, folder, top)
        return self._namespace(name.root, dotted)

    def _stands(self, root: str, dotted: str) -> bool:
        return self._ask.module(join(root, dotted.replace(".", "/"))) is not None

    def _choose(self, roots: tuple[str, ...], own: str, folder: str, top: str) -> Place:
        if own in roots:
            return Place("internal", own)
        here = folder or own
        above = [root for root in roots if not root or here == root or here.startswith(root + "/")]
        if above:
            return Place("internal", max(above, key=len))
        marked = [root for root in roots if self._ask.is_marked(root)]
        if marked:
            best = min(marked, key=lambda root: (-_shared(root, here), len(root), root))
            return Place("internal", best) if len(marked) == 1 else Place("internal", best, "approximate", 70)
        # Only folders that nothing marks as a root have the name: a declared distribution comes first.
        if self.distribution(top) is not None:
            return _EXTERNAL
        best = min(roots, key=lambda root: (-_shared(root, here), len(root), root))
        return Place("internal", best, "approximate", 50)

    def _namespace(self, own: str, dotted: str) -> Place:
        """A portion of a namespace package: in the file's own root, else in whichever root has it."""
        parts = dotted.split(".")
        folder = self._ask.module(join(own, parts[0]))
        if folder is not None and self._stands(own, dotted):
            return Place("internal", own)
        for length in range(len(parts), 1, -1):
            roots = self._ask.defining("/".join(parts[:length]))
            if roots:
                return self._choose(roots, own, "", parts[0])
        return _EXTERNAL if folder is None else Place("internal", own)

    def module(self, path: str, dotted: str, level: int) -> tuple[Place, Found | None, str]:
        """(place, module, full dotted name) of what `level` dots and `dotted` name in the file at `path`.

        The module is None where there is no file for it.
        """
        if level:
            return self._relative(path, dotted, level)
        place = self.place(path, dotted)
        if place.target != "internal":
            return place, None, dotted
        found = self._ask.module(join(place.root, dotted.replace(".", "/")))
        return place, found, dotted if found is None else found.name.dotted

    def _relative(self, path: str, dotted: str, level: int) -> tuple[Place, Found | None, str]:
        name = self._ask.name(path)
        folder = parent(path)
        for _ in range(level - 1):
            folder = parent(folder) if name is not None and folder != name.root else ""
        if name is None or folder == name.root or not folder:
            return Place("unknown"), None, "." * level + dotted  # beyond the top-level package
        stem = join(folder, dotted.replace(".", "/")) if dotted else folder
        found = self._ask.module(stem)
        inside = stem[len(name.root) + 1 :] if name.root else stem
        return (
            Place("internal", name.root),
            found,
            inside.replace("/", ".") if found is None else found.name.dotted,
        )

    def distribution(self, dotted: str) -> str | None:
        """Distribution that the project declares for an external module, if it does."""
        for candidate in candidates(dotted):
            if self._ask.carried("dependencies", f"dist:{candidate}"):
                return candidate
        return None


def _shared(root: str, folder: str) -> int:
    """How many leading components two folders share."""
    count = 0
    for one, other in zip(root.split("/"), folder.split("/"), strict=False):
        if one != other:
            break
        count += 1
    return count
