"""Which dotted name a file has, and which file a dotted name is: a pure function of the paths.

The rules, in order (docs/extractors.md has them with examples):

1. A configured root that holds the file is where its name starts; the longest one wins.
2. A file in a package (a chain of folders with an `__init__`) starts at the folder above the chain.
   Plain folders further up join the name as namespace packages where they stand directly below a marked
   root (`src`, `lib`, `python`, or a folder with a build file) and look like one: no modules of their
   own, not a conventional container (`tests`, `services`...); at the repository's top they need at
   least two packages. Plain folders inside a package are parts of the name, as Python takes them, save
   where one holds programs of their own (`tests`, `fixtures`, `examples`...).
3. Any other file is named from the nearest marked root above it (`scripts/run.py` is `scripts.run`).

Nothing is enumerated: every answer takes a few path questions, so an edit costs none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

_SOURCE_FOLDERS = frozenset({"src", "lib", "python"})
_BUILD_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
_PROJECT_FILES = (*_BUILD_FILES, "requirements.txt", "Pipfile", "manage.py")
ROOT_FILES = (*_PROJECT_FILES, "__init__.py", "__init__.pyi")
"""What is looked for in each folder above a module to find where its dotted name starts."""
_CONTAINERS = frozenset(
    {
        "api", "app", "apps", "backend", "bench", "benchmark", "benchmarks", "bin", "ci", "code",
        "contrib", "core", "demo", "demos", "deploy", "dev", "devtools", "doc", "docs", "docs_src",
        "e2e", "evals", "example", "examples", "extras", "fixtures", "frontend", "functional",
        "functions", "hack", "infra", "integration", "jobs", "lambdas", "libs", "local", "misc",
        "modules", "notebooks", "packages", "plugins", "project", "projects", "recipes", "sample",
        "samples", "scripts", "server", "servers", "service", "services", "site", "source", "sources",
        "test", "testing", "tests", "third_party", "tool", "tools", "tutorial", "tutorials", "unit",
        "utils", "vendor", "web", "worker", "workers",
    }
)  # fmt: skip
_APART = frozenset(
    {
        "demo", "demos", "docs", "docs_src", "e2e", "example", "examples", "fixtures", "functional",
        "integration", "notebooks", "recipes", "sample", "samples", "test", "testing", "tests", "third_party",
        "tutorial", "tutorials", "unit", "vendor",
    }
)  # fmt: skip
"""Containers whose packages are programs of their own even where the folder lies inside a package."""
_DATA = frozenset({"locale", "media", "node_modules", "static", "templates"})
"""Folders with very many folders, none of them a package: not worth looking into."""
FORMS = ("/__init__.py", ".py", "/__init__.pyi", ".pyi")
"""How a module may be stored, the one that Python would load first, then stubs."""


class PathQueries(Protocol):
    """The questions about paths that a layout asks; any `FactStore` answers them."""

    def has_path(self, path: str) -> bool:
        """Whether there is a file at `path`."""
        ...

    def has_folder(self, path: str) -> bool:
        """Whether there is a file below the folder `path`."""
        ...

    def children(self, folder: str) -> Sequence[str]:
        """Names directly below `folder`; folders end with a slash."""
        ...

    def paths_ending(self, suffix: str) -> Sequence[str]:
        """Paths that are `suffix` or end with `/` and `suffix`."""
        ...


class ModuleName(NamedTuple):
    """What a Python file is called."""

    dotted: str
    is_package: bool
    key_prefix: str
    """"" or what makes the name unique in the snapshot: `<root>:`, `stub:`, `file:`, `<path>:`."""
    root: str
    """Folder that the dotted name starts from; "" is the repository's top."""
    loose: bool
    """The file's folder is not a package, so its siblings are importable only where it is run."""
    in_package: bool = False
    """The first part of the name is a regular package: all of its modules are below this root."""


class Found(NamedTuple):
    """The module that stands at a stem."""

    path: str
    """File, or a folder with a trailing slash for a namespace package."""
    name: ModuleName


def join(folder: str, name: str) -> str:
    """`folder/name`, or `name` at the top."""
    return f"{folder}/{name}" if folder else name


def parent(path: str) -> str:
    """Folder that holds `path`; "" at the top."""
    return path.rpartition("/")[0]


def basename(path: str) -> str:
    """Last component."""
    return path.rpartition("/")[2]


def is_python(path: str) -> bool:
    """Whether the path is named as a module or a stub."""
    return path.endswith((".py", ".pyi"))


def may_be_python(path: str) -> bool:
    """Whether any dialect of Python may read the path, importable or not."""
    return path.lower().endswith((".py", ".pyi", ".pyw"))


def stem_of(path: str) -> str:
    """`shop/orders` for `shop/orders.py` and for `shop/orders/__init__.py`."""
    stem = path.removesuffix("i").removesuffix(".py")
    return parent(stem) if basename(stem) == "__init__" and parent(stem) else stem


class Layout:
    """Names and places of modules in one state of a repository.

    Args:
        paths: answers about the state's paths.
        roots: configured roots, relative folders; "" or "." is the repository's top.
    """

    def __init__(self, paths: PathQueries, roots: tuple[str, ...] = ()) -> None:
        self._paths = paths
        cleaned = {root.strip("/").removeprefix("./").removesuffix("/.") for root in roots}
        self.roots = tuple(
            sorted({"" if root == "." else root for root in cleaned}, key=lambda r: (-len(r), r))
        )
        self._package: dict[str, bool] = {}
        self._root: dict[str, str] = {}
        self._marked: dict[str, bool] = {}
        self._names: dict[str, ModuleName] = {}
        self._at: dict[str, Found | None] = {}
        self._defining: dict[str, tuple[str, ...]] = {}

    def is_package(self, folder: str) -> bool:
        """Whether the folder has an `__init__`; the repository's top never counts."""
        known = self._package.get(folder)
        if known is None:
            known = bool(folder) and any(
                self._paths.has_path(folder + init) for init in ("/__init__.py", "/__init__.pyi")
            )
            self._package[folder] = known
        return known

    def is_marked(self, folder: str) -> bool:
        """Whether a folder is a root by what it is: configured, the top, `src` and such, a project."""
        known = self._marked.get(folder)
        if known is None:
            known = (
                not folder
                or folder in self.roots
                or (basename(folder) in _SOURCE_FOLDERS and not self.is_package(parent(folder)))
                or any(self._paths.has_path(join(folder, name)) for name in _PROJECT_FILES)
            ) and not self.is_package(folder)
            self._marked[folder] = known
        return known

    def root_of(self, folder: str) -> str:
        """The folder that names of files directly in `folder` start from."""
        known = self._root.get(folder)
        if known is None:
            known = self._root[folder] = self._find_root(folder)
        return known

    def _find_root(self, folder: str) -> str:
        for root in self.roots:
            if not root or folder == root or folder.startswith(root + "/"):
                return root
        if self.is_package(folder):
            above = parent(folder)
            return self.root_of(above) if self.is_package(above) else self._root_above_chain(above)
        while not self.is_marked(folder):
            folder = parent(folder)
            if self.is_package(folder):
                return self.root_of(folder)
        return folder

    def _root_above_chain(self, top: str) -> str:
        """The root of the package chain that hangs directly below the plain folder `top`."""
        around = self._package_around(top)
        if around:
            return self.root_of(around)
        folder = top
        while not self.is_marked(folder) and basename(folder) not in _CONTAINERS:
            if self.has_modules(folder):
                return top
            folder = parent(folder)
        if folder == top:
            return top
        sure = folder in self.roots or basename(folder) in _SOURCE_FOLDERS or self._is_built(folder)
        return folder if sure or self._holds_several(top) else top

    def _package_around(self, folder: str) -> str:
        """The package that a plain folder lies in: Python takes each folder on the way for a part of the name."""
        while not self.is_marked(folder) and basename(folder) not in _APART:
            folder = parent(folder)
            if self.is_package(folder):
                return folder
        return ""

    def _is_built(self, folder: str) -> bool:
        return any(self._paths.has_path(join(folder, name)) for name in _BUILD_FILES)

    def has_modules(self, folder: str) -> bool:
        """Whether Python files are directly in the folder."""
        return any(is_python(name) for name in self._paths.children(folder))

    def holds_part_of_a_package(self, folder: str) -> bool:
        """Whether a plain folder of a package would be a part of it: modules or packages are directly in it."""
        return self.has_modules(folder) or (
            basename(folder) not in _DATA
            and any(
                name.endswith("/") and self.is_package(join(folder, name[:-1]))
                for name in self._paths.children(folder)
            )
        )

    def _holds_several(self, folder: str) -> bool:
        packages = [
            name
            for name in self._paths.children(folder)
            if name.endswith("/")
            and name[:-1] not in _CONTAINERS
            and self.is_package(join(folder, name[:-1]))
        ]
        return len(packages) > 1

    def traits(self, folder: str) -> tuple[object, ...]:
        """All that the names of files in and below a folder take from it; equal means they are unchanged
        as far as this folder goes."""
        return (
            self.is_package(folder),
            self.is_marked(folder),
            self._is_built(folder),
            not self.is_package(folder) and self.has_modules(folder),
            not self.is_package(folder) and self._holds_several(folder),
            self.root_of(folder),
        )

    def name(self, path: str) -> ModuleName:
        """The dotted name of a Python file and what else its keys need."""
        known = self._names.get(path)
        if known is None:
            known = self._names[path] = self._make_name(path)
        return known

    def _make_name(self, path: str) -> ModuleName:
        folder = parent(path)
        root = self.root_of(folder)
        if not is_python(path):  # `.pyw` and the like: read as Python, but no import can name them
            dotted = path[len(root) :].strip("/").rpartition(".")[0].replace("/", ".")
            return ModuleName(dotted, is_package=False, key_prefix=f"{path}:", root=root, loose=True)
        stem = path.removesuffix("i").removesuffix(".py")
        relative = stem[len(root) + 1 :] if root else stem
        parts = relative.split("/")
        is_package = parts[-1] == "__init__" and len(parts) > 1
        if is_package:
            parts = parts[:-1]
        stub_package = parts[0].endswith("-stubs")
        if any("." in part for part in parts):
            prefix = f"{path}:"  # a dot inside a component: no import can name it, its path must
        else:
            kind = self._form_prefix(path, stem_of(path), is_package, stub_package=stub_package)
            prefix = self._root_prefix(root, parts, path) + kind
        if stub_package:
            parts = [parts[0].removesuffix("-stubs"), *parts[1:]]
        in_package = self.is_package(join(root, relative.partition("/")[0]))
        return ModuleName(".".join(parts), is_package, prefix, root, not self.is_package(folder), in_package)

    def _form_prefix(self, path: str, stem: str, is_package: bool, *, stub_package: bool) -> str:
        """`stub:` for a stub beside its source, `file:` for a module that a package hides."""
        ending = "py" if path.endswith(".py") else "pyi"
        prefix = ""
        if ending == "pyi" and (
            stub_package or self._paths.has_path(stem + ".py") or self._paths.has_path(f"{stem}/__init__.py")
        ):
            prefix = "stub:"
        if not is_package and self._paths.has_path(f"{stem}/__init__.{ending}"):
            prefix += "file:"
        return prefix

    def _root_prefix(self, root: str, parts: list[str], path: str) -> str:
        rivals = self.defining(parts[0])
        if root not in rivals:
            twins = self._twins(root, "/".join(parts), path)
            if any(self.is_package(join(twin, parts[0])) for twin in twins if twin != root):
                return f"{root or '.'}:"  # a regular package keeps the name
            rivals = twins
        if len(rivals) < 2 or not root:
            return ""
        marked = [rival for rival in rivals if self.is_marked(rival)]
        return "" if marked == [root] else f"{root}:"

    def _twins(self, root: str, stem: str, path: str) -> tuple[str, ...]:
        """Roots below which a file of the same dotted name stands, this one included."""
        roots = {root}
        for form in FORMS:
            for other in self._paths.paths_ending(stem + form):
                if other != path and self.root_of(parent(other)) == (other[: -len(stem + form) - 1]):
                    roots.add(other[: -len(stem + form) - 1])
        return tuple(sorted(roots))

    def defining(self, stem: str) -> tuple[str, ...]:
        """Roots below which `stem` (`shop`, or `ns/shop/orders`) is a module or regular package, sorted."""
        known = self._defining.get(stem)
        if known is None:
            roots = set()
            for form in FORMS:
                for path in self._paths.paths_ending(stem + form):
                    root = path[: -len(stem + form) - 1]
                    if self.root_of(parent(path)) == root:
                        roots.add(root)
            known = self._defining[stem] = tuple(sorted(roots))
        return known

    def module_at(self, stem: str) -> Found | None:
        """The module whose file stands at `stem`: a package, a module, a stub, or a namespace folder."""
        if stem not in self._at:
            self._at[stem] = self._look_at(stem)
        return self._at[stem]

    def _look_at(self, stem: str) -> Found | None:
        for form in FORMS:
            if self._paths.has_path(stem + form):
                return Found(stem + form, self.name(stem + form))
        if stem and self._holds_python(stem, 3):
            root = self.root_of(stem)
            dotted = (stem[len(root) + 1 :] if root else stem).replace("/", ".")
            return Found(
                stem + "/", ModuleName(dotted, is_package=True, key_prefix="", root=root, loose=True)
            )
        return None

    def _holds_python(self, folder: str, depth: int) -> bool:
        """Whether a folder could be a namespace package: a module in it, or not far below."""
        if not self._paths.has_folder(folder):
            return False
        names = self._paths.children(folder)
        if any(is_python(name) for name in names):
            return True
        return depth > 1 and any(
            self._holds_python(join(folder, name[:-1]), depth - 1) for name in names if name.endswith("/")
        )
