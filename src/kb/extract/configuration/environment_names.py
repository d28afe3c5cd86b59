"""What a file calls the environment and those who read it."""

from __future__ import annotations

import re

from kb.extract.api import ParseView
from kb.extract.expressions import keywords, last
from kb.structure.facts import Assignment, Expr, Import

_READER_NAME = re.compile(r"env|conf|cfg|settings", re.IGNORECASE)
ENV_PACKAGES = frozenset({"environs", "environ", "decouple", "starlette.config", "prettyconf"})
ENV_MAKERS = frozenset({"Env", "FileAwareEnv", "Config", "AutoConfig"})
_OS_MAPPINGS = ("environ", "environb")
_OS_READERS = ("getenv", "getenvb")
_OS_WRITERS = ("putenv", "unsetenv")


class Names:
    """How a blob calls `os.environ`, its reader objects and its settings object."""

    def __init__(self, parse: ParseView) -> None:
        self.environ: set[str] = set()
        self.getenv: set[str] = set()
        self.writers: dict[str, str] = {}
        """`putenv` and `unsetenv` that are imported by name, under the name that the blob gives them."""
        self.readers: set[str] = set()
        self.settings: set[str] = set()
        self.schemes: dict[str, dict[str, Expr]] = {}
        self.imported: set[str] = set()
        """Names that may be readers which another module makes; linking tells."""
        for entry in parse.module.imports:
            self._import(entry)
        for assignment in parse.module.assignments:
            self._assign(assignment)
        bound = {entry.alias or entry.name or entry.module for entry in parse.module.imports}
        if "*" in bound and "os" not in bound:
            # `from .common import *` hands on what the other module imports.
            self.environ |= {f"os.{name}" for name in _OS_MAPPINGS}
            self.getenv |= {f"os.{name}" for name in _OS_READERS}

    def _import(self, entry: Import) -> None:
        bound = entry.alias or entry.name or entry.module
        if entry.module == "os" and entry.name is None and not entry.level:
            self.environ |= {f"{bound}.{name}" for name in _OS_MAPPINGS}
            self.getenv |= {f"{bound}.{name}" for name in (*_OS_READERS, *_OS_WRITERS)}
        elif entry.module == "os" and entry.name in _OS_MAPPINGS:
            self.environ.add(bound)
        elif entry.module == "os" and entry.name in (*_OS_READERS, *_OS_WRITERS):
            self.getenv.add(bound)
            if entry.name in _OS_WRITERS:
                self.writers[bound] = entry.name
        elif entry.module in ENV_PACKAGES and entry.name in ("env", "config"):
            self.readers.add(bound)
        elif entry.module == "django.conf" and entry.name == "settings":
            self.settings.add(bound)
        elif entry.name not in (None, "*") and entry.name != "settings" and _READER_NAME.search(bound):
            self.imported.add(bound)

    def _assign(self, entry: Assignment) -> None:
        call = entry.value
        if call is None or not entry.name or entry.scope:
            return
        if call.kind == "name" and call.value in self.environ:
            self.environ.add(entry.name)
        elif call.kind == "name" and call.value in self.getenv | {f"{name}.get" for name in self.environ}:
            self.getenv.add(entry.name)  # `env = os.environ.get`
        if call.kind != "call":
            return
        if last(call.value) in ENV_MAKERS:
            self.readers.add(entry.name)
            self.schemes[entry.name] = keywords(call)
