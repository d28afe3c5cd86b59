"""Which distribution provides an import name, and the other way round, where the two names differ.

A static table of well-known differences: nothing is installed, imported or asked of an index. A name
that is not in the table is taken for its own distribution, which is right for most of them; callers
that find such a guess undeclared should say that it is one (`is_known`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kb.extract.distribution_table import PROVIDERS

_SEPARATORS = re.compile(r"[-_.]+")


def normalise(distribution: str) -> str:
    """The PEP 503 form of a distribution's name: lower case, runs of `-_.` as one hyphen."""
    return _SEPARATORS.sub("-", distribution.strip()).lower()


def _inverse(table: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    names: dict[str, list[str]] = {}
    for module, providers in table.items():
        for provider in providers:
            names.setdefault(provider, []).append(module)
    return {provider: tuple(sorted(modules)) for provider, modules in names.items()}


_PROVIDED = _inverse(PROVIDERS)


NAMESPACES = frozenset(
    {"google", "azure", "zope", "ruamel", "backports", "jaraco", "sphinxcontrib", "opentelemetry", "airflow"}
)
"""Top-level names that many distributions share: their submodules tell them apart."""


_NEVER_IMPORTED = re.compile(
    r"(?:types-.*|.*-stubs|pytest-.*|flake8.*|mypy.*|pylint.*|sphinx.*|.*-binary|gunicorn|uvicorn|uwsgi|hypercorn"
    r"|daphne|ruff|black|isort|pre-commit|prek|tox|nox|coverage|ty|pyright|bandit|deptry|djhtml|curlylint|ipdb|ipython"
    r"|twine|build|hatch.*|setuptools.*|wheel|poetry.*|pip|pip-tools|uv|poethepoet|watchdog|watchfiles|uvloop|httptools"
    r"|tzdata|greenlet|psycopg|psycopg2|pymysql|mysqlclient|asyncpg|aiosqlite|aiomysql|oracledb|python-multipart"
    r"|email-validator|whitenoise|hiredis|pyarrow|lxml|argon2-cffi|bcrypt|brotli|gevent|watchman|pywatchman)"
)


def is_stub(distribution: str) -> bool:
    """Whether a distribution holds types only (`types-redis`, `django-stubs`)."""
    return distribution.startswith("types-") or distribution.endswith("-stubs")


def is_seldom_imported(distribution: str) -> bool:
    """Whether a (normalised) distribution is a tool, server, driver or plug-in that works without an import."""
    return _NEVER_IMPORTED.fullmatch(distribution) is not None


def is_known(module: str) -> bool:
    """Whether the table itself names a distribution for the module or one of its parents."""
    return any(prefix in PROVIDERS for prefix in _prefixes(module))


def candidates(module: str) -> tuple[str, ...]:
    """Normalised distributions that may provide a (dotted) import name, the likeliest first.

    The longest dotted prefix that the table knows comes first (`google.cloud.storage.Blob` is
    `google-cloud-storage`), then the prefixes' own names (`zope.event` is `zope-event`, then `zope`).
    """
    prefixes = _prefixes(module)
    found: list[str] = []
    for prefix in prefixes:
        found.extend(PROVIDERS.get(prefix, ()))
    found.extend(normalise(prefix) for prefix in prefixes)
    return tuple(dict.fromkeys(found))


def import_names(distribution: str) -> tuple[str, ...]:
    """Import names (possibly dotted) that a distribution may provide, the table's first."""
    name = normalise(distribution)
    own = name.replace("-", "_")
    names = [*_PROVIDED.get(name, ()), own]
    # `flask-login` is `flask_login`, `zope-event` is `zope.event`, `python-foo` and `django-foo` often `foo`.
    if "-" in name:
        names.append(name.replace("-", "."))
        prefixes = [prefix for prefix in ("python-", "django-", "py") if name.startswith(prefix)]
        names.extend(name.removeprefix(prefix).replace("-", "_") for prefix in prefixes)
    return tuple(dict.fromkeys(names))


def provider(module: str, declared: Iterable[str]) -> str | None:
    """The declared (normalised) distribution that provides the import name, None if none does."""
    known = set(declared)
    for candidate in candidates(module):
        if candidate in known:
            return candidate
    top = module.split(".", 1)[0]
    for name in sorted(known):
        if top in import_names(name):
            return name
    return None


def _prefixes(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
