"""The framework modules that kb knows, in the order in which they are asked."""

from __future__ import annotations

from kb.extract.entities.attrs import Attrs
from kb.extract.entities.dataclasses import Dataclasses
from kb.extract.entities.django import Django
from kb.extract.entities.enums import Enums
from kb.extract.entities.framework import Framework
from kb.extract.entities.namedtuple import NamedTuples
from kb.extract.entities.pydantic import Pydantic
from kb.extract.entities.sqlalchemy import SqlAlchemy
from kb.extract.entities.sqlmodel import SqlModel
from kb.extract.entities.typeddict import TypedDicts
from kb.extract.expressions import last
from kb.extract.reading import ClassSource

FRAMEWORKS: tuple[Framework, ...] = (
    SqlModel(),
    Pydantic(),
    SqlAlchemy(),
    Django(),
    Enums(),
    TypedDicts(),
    NamedTuples(),
    Attrs(),
    Dataclasses(),
)

BY_BASE = {base: framework for framework in reversed(FRAMEWORKS) for base in framework.bases}
_BY_DECORATOR = {name: framework for framework in reversed(FRAMEWORKS) for name in framework.decorators}
BY_CONSTRUCTOR = {name: framework for framework in reversed(FRAMEWORKS) for name in framework.constructors}
CONSTRUCTOR_NAMES = frozenset(last(name) for name in BY_CONSTRUCTOR)

_NO_ENTITY = frozenset(
    [
        "object",
        "TestCase",
        "SimpleTestCase",
        "TransactionTestCase",
        "Exception",
        "ValueError",
        "TypeError",
        "RuntimeError",
        "KeyError",
        "BaseException",
        "Warning",
        "UserWarning",
        "Protocol",
        "ABC",
        "Thread",
        "NodeVisitor",
    ]
)


def framework_of(source: ClassSource) -> tuple[Framework, int] | None:
    """The framework that a class is an entity of, with a confidence; None if it is no entity.

    A base class decides, however far up; then a decorator of the class; then its own fields.
    """
    for base in () if _plain(source) else source.ancestry():
        framework = BY_BASE.get(base.qualified)
        if framework is not None:
            return framework, 100
    for name, _ in source.decorators():
        framework = _BY_DECORATOR.get(name)
        if framework is not None:
            return framework, 100
    for framework in FRAMEWORKS:
        if source.entries and framework.claims(source):
            return framework, 80
    return None


def _plain(source: ClassSource) -> bool:
    bases = [base for base in source.definition.bases if base.kind != "kwarg"]
    return all(base.kind == "name" and last(base.value) in _NO_ENTITY for base in bases)
