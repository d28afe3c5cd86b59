"""What one manifest, lock file or Python file says about distributions."""

from __future__ import annotations

import re

import msgspec

from kb.extract.distributions import normalise
from kb.structure.facts import SpanRef

SOURCE = "dependencies"

_REQUIREMENT = re.compile(
    r"""
    \s*(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*
    (?:\[(?P<extras>[^\]]*)\])?\s*
    (?P<rest>.*)$
    """,
    re.VERBOSE | re.DOTALL,
)
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")


class Declared(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One requirement as a manifest declares it, or one package that a lock file pins."""

    distribution: str
    """Normalised."""
    span: SpanRef
    specifier: str = ""
    """`>=2,<3`, or the pinned version in a lock file."""
    extras: tuple[str, ...] = ()
    marker: str = ""
    source: str = ""
    """A URL, path or VCS reference instead of an index."""
    group: str = ""
    """"" for what the project itself needs; an extra, a dependency group, `build`..."""
    pinned: bool = False
    """A tool wrote the line for another distribution's sake (`# via`): a lock, whatever the file is called."""


class Included(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Another file that this one takes requirements (`-r`) or constraints (`-c`) from."""

    path: str
    """As written, relative to the including file."""
    kind: str
    """`requirements` | `constraints`."""
    span: SpanRef
    group: str = ""


class Unread(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A part that cannot be told statically."""

    reason: str
    span: SpanRef


class Imported(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The first statement of a Python file that imports from a top-level module."""

    module: str
    """Dotted name as written in that statement."""
    span: SpanRef
    named: bool = False
    """A text of a Django settings module names it (`INSTALLED_APPS`, a backend's path); no statement imports it."""


class DependencyFacts(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Everything of one blob."""

    form: str = ""
    """`pyproject`, `requirements`, `lock`...; "" for a Python file that is no manifest."""
    project: str = ""
    """The project's own normalised name, where the file gives one."""
    declared: tuple[Declared, ...] = ()
    included: tuple[Included, ...] = ()
    unread: tuple[Unread, ...] = ()
    imported: tuple[Imported, ...] = ()


class Requirement(msgspec.Struct, frozen=True):
    """A requirement string, read."""

    distribution: str
    specifier: str = ""
    extras: tuple[str, ...] = ()
    marker: str = ""
    source: str = ""

    def at(self, span: SpanRef, group: str = "") -> Declared:
        """The requirement as declared at a place."""
        return Declared(self.distribution, span, self.specifier, self.extras, self.marker, self.source, group)


def parse_requirement(text: str) -> Requirement | None:
    """A PEP 508 requirement, or a URL or path that names its distribution; None for anything else."""
    text = text.strip()
    egg = _EGG.search(text)
    if egg is not None:
        return Requirement(normalise(egg.group(1)), source=text)
    if text.startswith((".", "/", "http:", "https:", "git+", "hg+", "svn+", "file:")):
        return _wheel(text)
    match = _REQUIREMENT.match(text)
    if match is None:
        return None
    name = normalise(match.group("name"))
    extras = tuple(sorted(filter(None, (part.strip() for part in (match.group("extras") or "").split(",")))))
    rest, _, marker = match.group("rest").partition(";")
    rest = rest.strip()
    if rest.startswith("@"):
        # A URL may hold a semicolon; a marker after one needs a blank in front.
        url, _, marker = match.group("rest").strip().removeprefix("@").strip().partition(" ;")
        return Requirement(name, "", extras, marker.strip(), url.strip())
    specifier = rest.strip("()").replace(" ", "")
    if specifier and specifier[0] not in "<>=!~":
        return None
    return Requirement(name, specifier, extras, marker.strip())


def _wheel(text: str) -> Requirement | None:
    name = text.rpartition("/")[2]
    if name.endswith(".whl") and "-" in name:
        return Requirement(normalise(name.partition("-")[0]), source=text)
    return None
