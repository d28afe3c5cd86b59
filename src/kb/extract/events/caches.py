"""Caches: functions whose results are kept, and keys that are read, written and deleted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import tree_sitter

from kb.extract.events.facts import Blob, Mention, Seen
from kb.extract.events.joining import Found, Joining, Subject
from kb.extract.expressions import argument, brief, dotted, keywords, last, pattern_of, positional
from kb.extract.keys import qualified
from kb.model.artifacts import ArtifactDraft
from kb.structure.facts import Expr

_READS = frozenset(
    {"get", "get_many", "mget", "has_key", "exists", "hget", "hgetall", "aget", "ttl", "smembers", "lrange"}
)
_WRITES = frozenset(
    [
        "set",
        "add",
        "set_many",
        "setex",
        "psetex",
        "setnx",
        "hset",
        "hmset",
        "incr",
        "decr",
        "get_or_set",
        "aset",
        "aadd",
        "lpush",
        "rpush",
        "sadd",
        "incrby",
        "aget_or_set",
        "getset",
        "zadd",
    ]
)
_DELETES = frozenset(
    {"delete", "delete_many", "unlink", "hdel", "delete_pattern", "adelete", "srem", "invalidate"}
)
_CLEARS = frozenset({"cache_clear", "delete_memoized", "cache_invalidate"})
_FUNCTIONS = frozenset(
    {"lru_cache", "cache", "cached", "memoize", "cache_page", "cachedmethod", "alru_cache", "ttl_cache"}
)
_HOLDER = re.compile(r"cache|redis|memcache", re.IGNORECASE)
_CLIENTS = frozenset({"Redis", "StrictRedis", "FlaskRedis", "Cache", "SimpleCache", "Client", "from_url"})
_KINDS = {
    "functools.": "functools",
    "cachetools.": "cachetools",
    "django.views.decorators.cache.": "django-view",
    "async_lru.": "async_lru",
    "aiocache.": "aiocache",
    "flask_caching.": "flask",
    "flask_cache.": "flask",
    "fastapi_cache.": "fastapi",
    "django.utils.functional.": "functools",
}


class Caches:
    """One artifact per cached function, where it is defined; one per key, in the first file that names it."""

    id = "cache"
    calls = _READS | _WRITES | _DELETES | _CLEARS
    decorators = _FUNCTIONS

    def worth(self, owner: str, verb: str, blob: Blob) -> bool:
        """Told from the callee's text."""
        return verb in _CLEARS or bool(_HOLDER.search(owner)) or owner in blob.assigned

    def mentions(self, seen: Seen) -> Iterable[Mention]:
        """A caching decorator; a call with a key on something that is a cache by its name or its maker."""
        if seen.definition is not None:
            yield seen.mention(self.id, "declaration", subject=dotted(seen.expr))
        elif seen.verb in _CLEARS:
            given = argument(seen.expr, "f", 0)
            target = seen.owner if seen.verb == "cache_clear" else dotted(given)
            if target:
                yield seen.mention(self.id, "delete", subject=target)
        elif self._holds(seen):
            role = "read" if seen.verb in _READS else ("write" if seen.verb in _WRITES else "delete")
            keys = list(_keys(seen))
            for key in keys:
                yield seen.mention(self.id, role, key=key)
            if not keys and positional(seen.expr):
                yield seen.mention(self.id, role, dynamic=True)

    def _holds(self, seen: Seen) -> bool:
        owner = seen.owner
        if not owner:
            inner = seen.expr.items[0].items[0] if seen.expr.items and seen.expr.items[0].items else None
            return bool(_HOLDER.search(dotted(inner)))
        if _HOLDER.search(last(owner)):
            return True
        entry = seen.blob.assigned.get(owner)
        made = entry.value if entry is not None else None
        return made is not None and made.kind == "call" and last(made.value) in _CLIENTS

    def module_mentions(self, blob: Blob) -> Iterable[Mention]:
        """None."""
        return ()

    def keys(self, mention: Mention, blob: Blob) -> Iterable[str]:
        """`cache-key:<pattern>`; `on:<function>` for what clears a function's results."""
        if mention.key:
            return (f"cache-key:{mention.key}",)
        if mention.role == "delete" and mention.subject:
            return (f"on:{blob.original(mention.subject)}",)
        return ()

    def link(self, joining: Joining) -> Iterator[ArtifactDraft]:
        """Cached functions of the file; keys that the file is the first to name."""
        own = joining.own(self.id)
        for mention in own:
            if mention.role == "declaration":
                kind = self._kind(joining, Found(mention, joining.file))
                if kind:
                    yield self._function(joining, mention, kind)
        for key in dict.fromkeys(mention.key for mention in own if mention.key):
            users = [f for f in joining.all_with(f"cache-key:{key}", (self.id,)) if f.mention.key == key]
            if users and users[0].view.path == joining.file.path:
                yield self._key(joining, key, users)

    def _kind(self, joining: Joining, found: Found) -> str:
        made = joining.made(found, found.mention.subject)
        for prefix, kind in _KINDS.items():
            if made.startswith(prefix):
                return kind
        owner = found.mention.subject.rpartition(".")[0]
        return "unknown" if owner and _HOLDER.search(owner) else ""

    def _function(self, joining: Joining, mention: Mention, kind: str) -> ArtifactDraft:
        file = joining.file
        name = qualified(file, mention.scope)
        subject = Subject("cache", f"cache:{kind}:{name}", f"cached function {name}")
        subject.notes["via"] = mention.subject
        if kind == "unknown":
            subject.doubt(70)
        if mention.expr is not None and mention.expr.kind == "call":
            given = positional(mention.expr)
            if given:
                subject.notes["arguments"] = [brief(item) for item in given]
            subject.notes.update((word, brief(value)) for word, value in keywords(mention.expr).items())
        subject.stand(file.ground(mention.span, "declaration"))
        for found in joining.all_with(f"on:{last(mention.scope)}", (self.id,)):
            if found.mention.role != "delete" or not found.mention.subject:
                continue
            answer = joining.resolve(found, found.mention.subject)
            if answer.path == file.path and answer.symbol_path == mention.scope:
                subject.stand(found.view.ground(found.mention.span, "delete"))
                subject.add("cleared_by", function=joining.place(found), via=found.mention.verb)
        return subject.draft()

    def _key(self, joining: Joining, key: str, users: list[Found]) -> ArtifactDraft:
        subject = Subject("cache", f"cache:key:{key}", f"cache key {key}")
        groups = {"read": "reads", "write": "writes", "delete": "deletes"}
        for found in users:
            subject.stand(found.view.ground(found.mention.span, found.mention.role))
            subject.add(groups[found.mention.role], function=joining.place(found), via=found.mention.verb)
        if subject.has("writes") and not subject.has("deletes"):
            subject.notes["invalidation"] = "no deletion by this key"
        return subject.draft()


def _keys(seen: Seen) -> Iterator[str]:
    given = argument(seen.expr, "key", 0)
    if given is None:
        return
    if given.kind == "dict":
        items: tuple[Expr, ...] = given.items[::2]
    elif given.kind in ("list", "tuple", "set"):
        items = given.items
    else:
        items = (given,)
    for item in items:
        key = pattern_of(_constant(seen, item))
        if key:
            yield key


def _constant(seen: Seen, expr: Expr) -> Expr:
    """What a simple name is bound to: once in the enclosing function, or at the module's level."""
    if expr.kind != "name" or "." in expr.value:
        return expr
    local = _local_values(seen, expr.value)
    if local:
        return local[0] if len(local) == 1 else expr
    entry = seen.blob.assigned.get(expr.value)
    return entry.value if entry is not None and entry.value is not None else expr


def _local_values(seen: Seen, name: str) -> list[Expr]:
    node = seen.node
    while node is not None and node.type not in ("function_definition", "lambda", "module"):
        node = node.parent
    if node is None or node.type != "function_definition":
        return []
    body = node.child_by_field_name("body")
    wanted, parse = name.encode(), seen.blob.parse
    found: list[Expr] = []
    pending: list[tree_sitter.Node] = list(body.named_children) if body is not None else []
    while pending:
        current = pending.pop()
        if current.type == "assignment":
            left, right = current.child_by_field_name("left"), current.child_by_field_name("right")
            if left is not None and right is not None and left.text == wanted:
                found.append(parse.expr(right))
        elif current.type.endswith(("statement", "clause", "block")):
            pending.extend(current.named_children)
    return found
