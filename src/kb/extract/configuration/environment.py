"""Reads of environment variables and of Django's and Flask's settings, told from one blob."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec
import tree_sitter

from kb.extract import calls
from kb.extract.api import ParseView
from kb.extract.configuration.environment_names import Names
from kb.extract.configuration.facts import Read
from kb.extract.expressions import (
    argument,
    brief,
    dotted,
    keywords,
    last,
    pairs,
    pattern_of,
    positional,
    text_of,
)
from kb.structure.facts import Expr

_OS_CALLS = frozenset({b"getenv", b"get", b"setdefault", b"pop", b"putenv", b"unsetenv", b"getenvb"})
_ROLES = {"setdefault": "write", "putenv": "write", "pop": "delete", "unsetenv": "delete"}
_ENV_CASTS = frozenset(
    [
        "str",
        "bool",
        "int",
        "float",
        "list",
        "dict",
        "json",
        "url",
        "db",
        "db_url",
        "cache",
        "cache_url",
        "search_url",
        "email_url",
        "tuple",
        "path",
        "bytes",
        "datetime",
        "date",
        "timedelta",
        "uuid",
        "log_level",
        "enum",
        "decimal",
        "channels",
        "channels_url",
        "get_value",
        "dj_db_url",
        "dj_email_url",
        "dj_cache_url",
        "raw",
    ]
)
_WHOLE = frozenset({b"items", b"keys", b"values", b"copy"})
_WHOLE_ENVIRONMENT = "the whole environment"
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{2,}")
_FLASK_LOADS = frozenset(
    {b"from_object", b"from_pyfile", b"from_envvar", b"from_prefixed_env", b"from_file", b"from_json"}
)
_FLASK = re.compile(rb"\.config\[")
_FLASK_APP = re.compile(r"(?:^|\.)(?:current_)?app\.config$")
"""Certainly an application's; other objects called `config` have keys too."""
_NO_READS = frozenset(
    {
        "import_from_statement",
        "dotted_name",
        "aliased_import",
        "attribute",
        "call",
        "parameters",
        "lambda_parameters",
    }
)
"""Where a name of the environment stands without being read; what is called was read as a call."""


@lru_cache(maxsize=64)
def _assigned(name: bytes) -> re.Pattern[bytes]:
    """Finds what may be an assignment to the name alone; the tree tells it from a keyword argument."""
    return re.compile(rb"(?<![\w.])(" + re.escape(name) + rb")[ \t]*(?::[^=\n]+)?=(?!=)")


def _parameter(node: tree_sitter.Node) -> bytes | None:
    """The name of a parameter, however it is written."""
    named = node.child_by_field_name("name") or node
    while named.type != "identifier" and named.named_child_count:
        named = named.named_children[0]
    return named.text


@lru_cache(maxsize=64)
def _any_of(names: frozenset[str]) -> re.Pattern[bytes]:
    """Finds each of some identifiers."""
    return re.compile(rb"\b(?:" + b"|".join(re.escape(name.encode()) for name in sorted(names)) + rb")\b")


@lru_cache(maxsize=64)
def _settings_of(owners: frozenset[bytes]) -> re.Pattern[bytes]:
    """Finds `settings.DEBUG`. It begins with the names themselves: anything else is skipped at once."""
    names = b"|".join(re.escape(name) for name in sorted(owners) if name.isascii())
    return re.compile(rb"\b(" + (names or rb"(?!)") + rb")\.([A-Z][A-Z0-9_]+)\b")


class Environment:
    """Finds the reads of one blob."""

    def __init__(self, parse: ParseView) -> None:
        self.parse = parse
        self.names = Names(parse)
        self.constants = {
            entry.name: entry.value
            for entry in parse.module.assignments
            if entry.name
            and not entry.scope
            and entry.value is not None
            and entry.value.kind in ("str", "bytes")
        }
        self._seen: set[tuple[str, str, str]] = set()

    def reads(self) -> Iterator[Read]:
        """Every read and write, calls first, then subscripts and attributes, each in source order."""
        names = self.names
        if names.environ or names.getenv or names.readers or names.imported:
            yield from self._calls()
        if names.environ:
            yield from self._subscripts()
        if names.settings:
            yield from self._django()
        if b".config" in self.parse.source:
            yield from self._flask()

    def _name(self, expr: Expr | None) -> str:
        if expr is not None and expr.kind == "name" and expr.value in self.constants:
            expr = self.constants[expr.value]
        if expr is not None and expr.kind == "bytes":  # a name of `os.environb`
            return expr.value
        return pattern_of(expr) or ""

    def _calls(self) -> Iterator[Read]:
        names = self.names
        wanted = set(_OS_CALLS) | {last(name).encode() for name in names.getenv} | _WHOLE | {b"update"}
        for reader in names.readers | names.imported:
            wanted |= {reader.encode(), *(cast.encode() for cast in _ENV_CASTS)}
        source = self.parse.source
        for node in calls.named(self.parse, wanted):
            arguments = node.child_by_field_name("arguments")
            if arguments is None:
                continue
            callee = source[node.start_byte : arguments.start_byte].decode("utf-8", "replace").strip()
            owner, _, verb = callee.rpartition(".")
            if (callee in names.getenv or owner in names.environ) and self._is_own(node, callee):
                continue
            if callee in names.getenv or (owner in names.environ and verb.encode() in _OS_CALLS):
                yield self._os_read(node, verb)
            elif owner in names.environ and verb.encode() in _WHOLE:
                yield Read(
                    "env", "", self.parse.cite(node), self.parse.scope_of(node), "read", _WHOLE_ENVIRONMENT
                )
            elif owner in names.environ and verb == "update":
                yield from self._update("env", node)
            elif callee in names.imported or (owner in names.imported and verb in _ENV_CASTS):
                read = self._reader_read(node, callee if callee in names.imported else owner, verb)
                if _VARIABLE.fullmatch(read.name):
                    reader = callee if callee in names.imported else owner
                    yield msgspec.structs.replace(read, reader=reader)
            elif callee in names.readers or (owner in names.readers and verb in _ENV_CASTS):
                yield self._reader_read(node, callee if callee in names.readers else owner, verb)

    def _is_own(self, node: tree_sitter.Node, name: str) -> bool:
        """Whether a function around the node binds the name itself (`def f(environ)`), so that it is another thing."""
        head = name.partition(".")[0].encode()
        around = node.parent
        while around is not None:
            if around.type in ("function_definition", "lambda"):
                given = around.child_by_field_name("parameters")
                if given is not None and any(_parameter(item) == head for item in given.named_children):
                    return True
                if around.type == "function_definition" and self._assigns(around, head):
                    return True
            around = around.parent
        return False

    def _assigns(self, function: tree_sitter.Node, name: bytes) -> bool:
        for match in _assigned(name).finditer(self.parse.source, function.start_byte, function.end_byte):
            at = self.parse.root.descendant_for_byte_range(match.start(1), match.end(1))
            holder = at.parent if at is not None else None
            if holder is None or holder.type != "assignment" or holder.child_by_field_name("left") != at:
                continue
            while holder is not None and holder.type != "function_definition":
                holder = holder.parent
            if holder == function:  # what a function inside of it binds is that one's
                return True
        return False

    def _update(self, family: str, node: tree_sitter.Node) -> Iterator[Read]:
        """What `update({...}, NAME=...)` writes; anything else than a literal mapping is a write of no name."""
        call, span, scope = self.parse.expr(node), self.parse.cite(node), self.parse.scope_of(node)
        given = [(word, value) for word, value in keywords(call).items()]
        for item in positional(call):
            if item.kind == "dict":
                given += [(text_of(key) or "", value) for key, value in pairs(item) if value is not None]
            else:
                given.append(("", item))
        for name, value in given:
            yield Read(family, name, span, scope, "write", "update", brief(value) if name else None)

    def _os_read(self, node: tree_sitter.Node, verb: str) -> Read:
        call = self.parse.expr(node)
        role = _ROLES.get(self.names.writers.get(verb, verb), "read")
        default = argument(call, "default", 1)
        return Read(
            "env",
            self._name(positional(call)[0] if positional(call) else argument(call, "key")),
            self.parse.cite(node),
            self.parse.scope_of(node),
            role,
            call.value,
            None if default is None else brief(default),
        )

    def _reader_read(self, node: tree_sitter.Node, reader: str, verb: str) -> Read:
        call = self.parse.expr(node)
        name = self._name(positional(call)[0] if positional(call) else argument(call, "var"))
        default = argument(call, "default", None if "decouple" in call.value else 1)
        cast = dotted(argument(call, "cast"))
        scheme = self.names.schemes.get(reader, {}).get(name)
        if scheme is not None:
            parts = scheme.items if scheme.kind == "tuple" else (scheme,)
            cast = cast or dotted(parts[0])
            default = default or (parts[1] if len(parts) > 1 else None)
        return Read(
            "env",
            name,
            self.parse.cite(node),
            self.parse.scope_of(node),
            "read",
            call.value,
            None if default is None else brief(default),
            required=default is None,
            cast=cast or (verb if verb in _ENV_CASTS else ""),
        )

    def _subscripts(self) -> Iterator[Read]:
        for match in _any_of(frozenset(map(last, self.names.environ))).finditer(self.parse.source):
            node = self.parse.root.descendant_for_byte_range(match.start(), match.end())
            if node is None or node.type != "identifier":
                continue
            owner = node.parent if node.parent is not None and node.parent.type == "attribute" else node
            if (owner.text or b"").decode("utf-8", "replace") not in self.names.environ:
                continue
            holder = owner.parent
            if holder is None or holder.type in _NO_READS or holder.child_by_field_name("name") == owner:
                continue
            if self._is_own(node, (owner.text or b"").decode("utf-8", "replace")):
                continue
            read = self._held(owner, holder)
            if read is not None:
                yield read

    def _held(self, owner: tree_sitter.Node, holder: tree_sitter.Node) -> Read | None:
        parse = self.parse
        if holder.type == "subscript" and holder.child_by_field_name("value") == owner:
            key = holder.child_by_field_name("subscript")
            parent = holder.parent
            role = "read"
            if (
                parent is not None
                and parent.type == "assignment"
                and parent.child_by_field_name("left") == holder
            ):
                role = "write"
            elif parent is not None and parent.type == "delete_statement":
                role = "delete"
            name = self._name(parse.expr(key)) if key is not None else ""
            span = parse.cite(holder)
            written = (owner.text or b"").decode("utf-8", "replace")
            via = "os.environb[]" if last(written) == "environb" else "os.environ[]"
            return Read("env", name, span, parse.scope_of(holder), role, via, required=role == "read")
        if holder.type == "comparison_operator":
            first = holder.child(0)
            if first != owner and first is not None:
                span = parse.cite(holder)
                return Read(
                    "env",
                    self._name(parse.expr(first)),
                    span,
                    parse.scope_of(holder),
                    "read",
                    "in os.environ",
                )
        if holder.type == "assignment" and holder.child_by_field_name("left") == owner:
            return None
        if holder.type == "assignment" and not parse.scope_of(holder):
            return None  # another name for it, read as such
        span = parse.cite(owner)
        return Read("env", "", span, parse.scope_of(owner), "read", _WHOLE_ENVIRONMENT)

    def _django(self) -> Iterator[Read]:
        source = self.parse.source
        owners = {name.encode() for name in self.names.settings}
        for match in _settings_of(frozenset(owners)).finditer(source):
            if source[match.start() - 1 : match.start()] != b".":
                node = self.parse.root.descendant_for_byte_range(match.start(), match.end())
                if node is not None and node.type == "attribute" and node.end_byte == match.end():
                    yield from self._setting("django", match.group(2).decode(), node)
        for node in calls.named(self.parse, {b"getattr"}):
            arguments = node.child_by_field_name("arguments")
            first = arguments.named_child(0) if arguments is not None else None
            if first is None or first.text not in owners:
                continue
            call = self.parse.expr(node)
            given = positional(call)
            name = text_of(given[1]) if len(given) > 1 else None
            default = given[2] if len(given) > 2 else None
            if len(given) > 1:
                yield from self._setting("django", name or "", node, "getattr", default)

    def _setting(
        self, family: str, name: str, node: tree_sitter.Node, via: str = "", default: Expr | None = None
    ) -> Iterator[Read]:
        scope = self.parse.scope_of(node)
        if (family, name, scope) in self._seen:
            return
        self._seen.add((family, name, scope))
        parent = node.parent
        assigned = (
            parent is not None and parent.type == "assignment" and parent.child_by_field_name("left") == node
        )
        value = parent.child_by_field_name("right") if assigned and parent is not None else None
        if value is not None:
            default = self.parse.expr(value)
        shown = None if default is None else brief(default)
        yield Read(family, name, self.parse.cite(node), scope, "write" if assigned else "read", via, shown)

    def _flask(self) -> Iterator[Read]:
        for match in _FLASK.finditer(self.parse.source):
            node = self.parse.root.descendant_for_byte_range(match.end() - 1, match.end())
            holder = node.parent if node is not None else None
            if holder is None or holder.type != "subscript":
                continue
            key = holder.child_by_field_name("subscript")
            name = text_of(self.parse.expr(key)) if key is not None else None
            owner = holder.child_by_field_name("value")
            certain = owner is not None and _FLASK_APP.search((owner.text or b"").decode("utf-8", "replace"))
            if key is not None and ((name and name.isupper()) or (name is None and certain)):
                yield from self._setting("flask", name or "", holder, "config[]")
        for node in calls.named(self.parse, {b"get", b"setdefault"}):
            arguments = node.child_by_field_name("arguments")
            end = node.end_byte if arguments is None else arguments.start_byte
            callee = self.parse.source[node.start_byte : end].strip()
            if not callee.endswith((b".config.get", b".config.setdefault")):
                continue
            call = self.parse.expr(node)
            given = argument(call, "key", 0)
            name = text_of(given)
            certain = _FLASK_APP.search(call.value.rpartition(".")[0])
            if given is not None and ((name and name.isupper()) or (name is None and certain)):
                default = argument(call, "default", 1)
                yield from self._setting("flask", name or "", node, last(call.value), default)
        for node in calls.named(self.parse, _FLASK_LOADS | {b"from_mapping", b"update"}):
            call = self.parse.expr(node)
            held, _, verb = call.value.rpartition(".")
            if last(held) != "config" or "." not in held:
                continue
            if verb.encode() not in _FLASK_LOADS:
                if _FLASK_APP.search(held):
                    yield from self._update("flask", node)
                continue
            span, scope = self.parse.cite(node), self.parse.scope_of(node)
            given = positional(call)[0] if positional(call) else None
            if verb == "from_envvar" and text_of(given):
                yield Read("env", text_of(given) or "", span, scope, "read", verb)
            yield Read(
                "flask", "", span, scope, "write", f"{verb}({brief(given) if given is not None else ''})"
            )
