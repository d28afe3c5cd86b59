"""Readers of manifests: pyproject.toml, Pipfile, setup.cfg and requirements files."""

from __future__ import annotations

import configparser
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kb.extract.api import ParseView
from kb.extract.dependencies.facts import Declared, DependencyFacts, Included, Unread, parse_requirement
from kb.extract.dependencies.toml_lines import DEEPEST, Path, TomlScanner
from kb.extract.distributions import normalise
from kb.structure.facts import SpanRef

_CAPTION = "requirement"


class Manifest:
    """Collects what a manifest declares; cites each line once it is sure which."""

    def __init__(self, parse: ParseView, form: str) -> None:
        self.parse = parse
        self.form = form
        self.text = parse.source.decode("utf-8")
        self.lines = [line.decode("utf-8") for line in parse.source.splitlines()]
        self.project = ""
        self.declared: list[Declared] = []
        self.included: list[Included] = []
        self.unread: list[Unread] = []

    def cite(self, start: int, end: int | None = None, name: str = "") -> SpanRef:
        """Whole lines as a span of the manifest."""
        return self.parse.cite_lines(start, end or start, _CAPTION, name)

    def whole(self) -> SpanRef:
        """The whole file, where no line can be named."""
        return self.parse.cite_lines(1, len(self.lines), "manifest", "")

    def require(self, text: str, start: int, end: int, group: str = "") -> None:
        """A requirement string at its lines; one that cannot be read is said to be so."""
        read = parse_requirement(text)
        if read is None:
            self.unread.append(Unread(f"not a requirement: {text[:120]}", self.cite(start, end)))
        else:
            self.declared.append(read.at(self.cite(start, end, read.distribution), group))

    def facts(self) -> DependencyFacts:
        """Everything collected, in order."""
        return DependencyFacts(
            self.form, self.project, tuple(self.declared), tuple(self.included), tuple(self.unread)
        )


class TomlManifest(Manifest):
    """A manifest in TOML: values from `tomllib`, lines from the scanner where both agree."""

    def __init__(self, parse: ParseView, form: str) -> None:
        super().__init__(parse, form)
        scanner = TomlScanner(self.text).scan()
        self.places = scanner.places
        self.data: dict[str, Any] = {}
        if not parse.source.strip():  # empty, or blanks that TOML does not know: nothing to cite
            return
        if scanner.too_deep:
            self.unread.append(Unread(f"nested deeper than {DEEPEST} levels", self.whole()))
            return
        try:
            self.data = tomllib.loads(self.text)
        except (ValueError, RecursionError) as error:  # also what `int` says of a number of 5,000 digits
            self.unread.append(Unread(f"not valid TOML: {error}", self.whole()))

    def lines_of(self, path: Path, value: str | None = None) -> tuple[int, int]:
        """Lines of a value; of everything below the path for a table or array; of the file at worst."""
        place = self.places.get(path)
        if place is not None and (value is None or place.value == value):
            return place.start, place.end
        inside = [p for key, p in self.places.items() if key[: len(path)] == path] if value is None else []
        if inside:
            return min(p.start for p in inside), max(p.end for p in inside)
        return 1, len(self.lines)

    def at(self, *path: str) -> Any:
        """The value at a path, None where there is none."""
        value: Any = self.data
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def strings(self, group: str, *path: str) -> None:
        """An array of requirement strings."""
        value = self.at(*path)
        for place, text in enumerate(value if isinstance(value, list) else ()):
            if isinstance(text, str):
                self.require(text, *self.lines_of((*path, place), text), group)

    def table(self, group: str, *path: str) -> None:
        """A table of name -> version or options, as Poetry and Pipenv write it."""
        value = self.at(*path)
        for name, given in value.items() if isinstance(value, dict) else ():
            if normalise(name) != "python":
                self.declared.append(self._named(name, given, (*path, name), group))

    def _named(self, name: str, given: Any, path: Path, group: str) -> Declared:
        start, end = self.lines_of(path, given if isinstance(given, str) else None)
        options = given[0] if isinstance(given, list) and given else given
        distribution = normalise(name)
        span = self.cite(start, end, distribution)
        if not isinstance(options, dict):
            specifier = str(options) if isinstance(options, str) else ""
            return Declared(distribution, span, "" if specifier == "*" else specifier, group=group)
        version = options.get("version", "")
        sources = [str(options[word]) for word in ("git", "path", "url", "file") if word in options]
        extras = options.get("extras", ())
        optional = options.get("optional") is True
        return Declared(
            distribution,
            span,
            str(version) if version != "*" else "",
            tuple(sorted(str(extra) for extra in extras)) if isinstance(extras, list) else (),
            str(options.get("markers", options.get("python", ""))),
            sources[0] if sources else "",
            group or ("optional" if optional else ""),
        )


def read_pyproject(parse: ParseView) -> DependencyFacts:
    """PEP 621, PEP 735, Poetry, PDM, uv, Hatch and setuptools tables of a pyproject.toml."""
    manifest = TomlManifest(parse, "pyproject")
    names = (manifest.at("project", "name"), manifest.at("tool", "poetry", "name"))
    manifest.project = next((normalise(name) for name in names if isinstance(name, str)), "")
    manifest.strings("", "project", "dependencies")
    for group in _names(manifest.at("project", "optional-dependencies")):
        manifest.strings(group, "project", "optional-dependencies", group)
    for group in _names(manifest.at("dependency-groups")):
        manifest.strings(group, "dependency-groups", group)
    manifest.strings("build", "build-system", "requires")
    manifest.table("", "tool", "poetry", "dependencies")
    manifest.table("dev", "tool", "poetry", "dev-dependencies")
    for group in _names(manifest.at("tool", "poetry", "group")):
        manifest.table(group, "tool", "poetry", "group", group, "dependencies")
    manifest.strings("dev", "tool", "uv", "dev-dependencies")
    for group in _names(manifest.at("tool", "pdm", "dev-dependencies")):
        manifest.strings(group, "tool", "pdm", "dev-dependencies", group)
    for name in _names(manifest.at("tool", "hatch", "envs")):
        manifest.strings(name, "tool", "hatch", "envs", name, "dependencies")
        manifest.strings(name, "tool", "hatch", "envs", name, "extra-dependencies")
    _read_dynamic(manifest)
    return manifest.facts()


def _names(table: Any) -> list[str]:
    return list(table) if isinstance(table, Mapping) else []


def _read_dynamic(manifest: TomlManifest) -> None:
    """`dynamic = ["dependencies"]`: setuptools may name the files; any other way runs code."""
    dynamic = manifest.at("project", "dynamic")
    for place, field in enumerate(dynamic if isinstance(dynamic, list) else ()):
        if field not in ("dependencies", "optional-dependencies"):
            continue
        found = False
        given = manifest.at("tool", "setuptools", "dynamic", field)
        tables = {"": given} if field == "dependencies" else (given if isinstance(given, dict) else {})
        for group, table in tables.items():
            files = table.get("file", ()) if isinstance(table, dict) else ()
            path = ("tool", "setuptools", "dynamic", field, *((group,) if group else ()))
            for name in [files] if isinstance(files, str) else files:
                span = manifest.cite(*manifest.lines_of(path))
                manifest.included.append(Included(str(name), "requirements", span, group))
                found = True
        if not found:
            span = manifest.cite(*manifest.lines_of(("project", "dynamic", place)))
            manifest.unread.append(Unread(f"{field} are computed when the project is built", span))


def read_pipfile(parse: ParseView) -> DependencyFacts:
    """Packages, development packages and further categories of a Pipfile."""
    manifest = TomlManifest(parse, "pipfile")
    for name in _names(manifest.data):
        if name not in ("source", "requires", "scripts", "pipenv"):
            manifest.table({"packages": "", "dev-packages": "dev"}.get(name, name), name)
    return manifest.facts()


def read_setup_cfg(parse: ParseView) -> DependencyFacts:
    """`install_requires`, extras and the rest of a declarative setup.cfg."""
    manifest = Manifest(parse, "setup-cfg")
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(manifest.text)
    except configparser.Error as error:
        manifest.unread.append(
            Unread(f"not a configuration file: {error.message.splitlines()[0]}", manifest.whole())
        )
        return manifest.facts()
    manifest.project = normalise(parser.get("metadata", "name", fallback=""))
    for section, option, line, text in _ini_lines(manifest.lines):
        groups = {
            ("options", "install_requires"): "",
            ("options", "setup_requires"): "build",
            ("options", "tests_require"): "test",
        }
        group = option if section == "options.extras_require" else groups.get((section, option))
        if group is None:
            continue
        if text.startswith("file:"):
            for name in text.removeprefix("file:").split(","):
                manifest.included.append(Included(name.strip(), "requirements", manifest.cite(line), group))
        else:
            manifest.require(text, line, line, group)
    return manifest.facts()


def _ini_lines(lines: list[str]) -> Iterator[tuple[str, str, int, str]]:
    """(section, option, line number, value line) of each value line of an INI file."""
    section = option = ""
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if not line[0].isspace() and stripped[0] == "[" and "]" in stripped:
            section, option = stripped[1 : stripped.index("]")].strip(), ""
        elif line[0].isspace():
            if option:
                yield section, option, number, _uncommented(stripped)
        else:
            name, _, value = (
                stripped.replace(":", "=", 1).partition("=")
                if "=" not in stripped
                else stripped.partition("=")
            )
            option = name.strip().lower()
            if value.strip():
                yield section, option, number, _uncommented(value.strip())


def _uncommented(text: str) -> str:
    return text.partition(" #")[0].strip()


def read_requirements(parse: ParseView) -> DependencyFacts:
    """A requirements or constraints file: requirements, `-r`, `-c`, `-e`, continuations, hashes."""
    manifest = Manifest(parse, "requirements")
    reasons = _reasons(manifest.lines)
    for start, end, text in _logical_lines(manifest.lines):
        words = text.split()
        first = words[0]
        if first.startswith("-"):
            _option_line(manifest, text, words, start, end)
            continue
        # Per-requirement options (`--hash=...`) stand behind the requirement.
        requirement = text.partition(" --")[0].strip()
        read = parse_requirement(requirement)
        if read is None and ("/" in requirement or requirement.startswith(".")):
            reason = f"a path or URL that does not say its distribution: {requirement[:120]}"
            manifest.unread.append(Unread(reason, manifest.cite(start, end)))
        else:
            manifest.require(requirement, start, end)
            via = reasons.get(end, reasons.get(start))
            if via and read is not None and all(_is_distribution(reason) for reason in via):
                manifest.declared[-1] = msgspec.structs.replace(manifest.declared[-1], pinned=True)
    return manifest.facts()


def _reasons(lines: list[str]) -> dict[int, list[str]]:
    """What a compiled file says a line is there for (`# via`), by the number of the requirement's last line."""
    found: dict[int, list[str]] = {}
    at, inside = 0, False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        before, mark, comment = text.partition("#")
        comment = comment.strip()
        if before.strip():
            at, inside = number, False
        if mark and comment.startswith("via"):
            inside = True
            comment = comment.removeprefix("via").strip()
        if mark and inside and at:
            found.setdefault(at, []).extend(filter(None, (part.strip() for part in comment.split(","))))
    return found


def _is_distribution(reason: str) -> bool:
    """Another distribution, rather than a file that asks for it (`-r base.in`, `shop (pyproject.toml)`)."""
    return (
        not reason.startswith("-") and "(" not in reason and "/" not in reason and not reason.endswith(".in")
    )


def _option_line(manifest: Manifest, text: str, words: list[str], start: int, end: int) -> None:
    option, _, value = words[0].partition("=")
    value = value or (words[1] if len(words) > 1 else "")
    if option in ("-r", "--requirement", "-c", "--constraint"):
        kind = "requirements" if option in ("-r", "--requirement") else "constraints"
        manifest.included.append(Included(value, kind, manifest.cite(start, end)))
    elif option.startswith(("-r", "-c")) and not option.startswith("--"):
        kind = "requirements" if option.startswith("-r") else "constraints"
        manifest.included.append(Included(option[2:], kind, manifest.cite(start, end)))
    elif option in ("-e", "--editable"):
        read = parse_requirement(text.partition(words[0])[2].strip())
        if read is not None:
            manifest.declared.append(read.at(manifest.cite(start, end, read.distribution)))
        elif value not in (".", "./") and not value.startswith((".[", "./[")):
            manifest.unread.append(
                Unread(
                    f"an editable path that does not say its distribution: {value[:120]}",
                    manifest.cite(start, end),
                )
            )


def _logical_lines(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """(first line, last line, text) with continuations joined, comments and blanks left out."""
    parts: list[str] = []
    start = 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        comment = text.startswith("#") or " #" in text
        text = "" if text.startswith("#") else text.partition(" #")[0].rstrip()
        if not parts:
            start = number
        if text.endswith("\\") and not comment:
            parts.append(text[:-1].strip())
            continue
        parts.append(text)
        joined = " ".join(filter(None, parts))
        parts = []
        if joined:
            yield start, number, joined
    if joined := " ".join(filter(None, parts)):
        yield start, len(lines), joined
