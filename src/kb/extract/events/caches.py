"""Caches: functions whose results are kept, and keys that are read, written and deleted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kb.extract.events import cache_keys, cached_calls
from kb.extract.events.facts import Blob, Mention, Seen
from kb.extract.events.joining import Found, Joining, Subject
from kb.extract.expressions import argument, dotted, keywords, last, positional, worded
from kb.extract.keys import qualified
from kb.model.artifacts import ArtifactDraft
from kb.structure.facts import Expr

_READS = frozenset(
    """
    get aget get_many aget_many mget has_key ahas_key exists hget hgetall hmget hkeys hvals hexists hlen getex
    ttl pttl smembers sismember scard lrange llen lindex zrange zrevrange zrangebyscore zscore zcard zrank
    scan_iter keys strlen
    """.split()
)
_WRITES = frozenset(
    """
    set aset add aadd set_many aset_many mset msetnx setex psetex setnx hset hmset hsetnx incr decr incrby decrby
    incrbyfloat hincrby aincr adecr get_or_set aget_or_set getset lpush rpush sadd zadd zincrby ltrim expire
    expireat pexpire persist touch atouch setbit
    """.split()
)
_DELETES = frozenset(
    """
    delete adelete delete_many adelete_many unlink hdel delete_pattern srem zrem lrem lpop rpop blpop brpop spop
    getdel zremrangebyscore invalidate
    """.split()
)
_EVERYTHING = frozenset({"clear", "aclear", "flushdb", "flushall"})
_CLEARS = frozenset({"cache_clear", "delete_memoized", "cache_invalidate"})
_FUNCTIONS = frozenset(
    """
    lru_cache cache cached memoize cache_page cachedmethod alru_cache ttl_cache cached_property
    """.split()
)
_OWN = re.compile(r"(?:^|_)(?:cached?|memoi[sz]ed?)(?:_|$)")
_NEVER = re.compile(r"never|^no_|clear|invalidat|control|delete")
_HOLDER = re.compile(r"cache|redis|memcache", re.IGNORECASE)
_PIPES = frozenset({"pipe", "pipeline"})
_CLIENTS = frozenset(
    {"Redis", "StrictRedis", "FlaskRedis", "Cache", "SimpleCache", "Client", "from_url", "pipeline", "caches"}
)
_PLAIN = frozenset(
    {"dict", "defaultdict", "OrderedDict", "WeakValueDictionary", "WeakKeyDictionary", "set", "list"}
)
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
    "werkzeug.utils.": "werkzeug",
    "joblib.": "joblib",
}


class Caches:
    """One artifact per cached function, where it is defined; one per key, in the first file that names it."""

    id = "cache"
    calls = _READS | _WRITES | _DELETES | _CLEARS | _EVERYTHING | _FUNCTIONS
    decorators = _FUNCTIONS | cached_calls.DECORATORS
    own_decorators = _OWN

    def worth(self, owner: str, verb: str, blob: Blob) -> bool:
        """Told from the callee's text."""
        if (
            verb in _CLEARS
            or (verb in _FUNCTIONS and blob.is_bound(owner or verb))
            or _HOLDER.search(owner)
            or owner in blob.assigned
        ):
            return True
        return (last(owner) in _PIPES or owner in blob.pipes) and b"redis" in blob.parse.source.lower()

    def mentions(self, seen: Seen) -> Iterable[Mention]:
        """A caching decorator; a call with a key on something that is a cache by its name or its maker."""
        if seen.definition is not None and seen.verb in cached_calls.DECORATORS:
            yield from cached_calls.in_wrapper(seen, self.id, _FUNCTIONS)
        elif seen.definition is not None:
            if seen.verb in _FUNCTIONS or not _NEVER.search(seen.verb):
                yield seen.mention(self.id, "declaration", subject=dotted(seen.expr))
        elif seen.verb in _FUNCTIONS:
            yield from cached_calls.of_call(seen, self.id)
        elif seen.verb in _CLEARS:
            given = argument(seen.expr, "f", 0)
            target = seen.owner if seen.verb == "cache_clear" else dotted(given)
            if target:
                yield seen.mention(self.id, "delete", subject=target)
        elif seen.verb in _EVERYTHING:
            if self._holds(seen) and (last(seen.owner) == "cache" or "redis" in seen.owner.lower()):
                yield seen.mention(self.id, "delete", key="*")
        elif self._holds(seen):
            role = "read" if seen.verb in _READS else ("write" if seen.verb in _WRITES else "delete")
            keys = list(cache_keys.keys_of(seen))
            for key in keys:
                yield seen.mention(self.id, role, key=key)
            unpacked = any(item.kind == "star" for item in seen.expr.items[1:])
            if (not keys or unpacked) and cache_keys.given(seen) is not None:
                yield seen.mention(self.id, role, dynamic=True)

    def _holds(self, seen: Seen) -> bool:
        owner = seen.owner
        if not owner:
            inner = seen.expr.items[0].items[0] if seen.expr.items and seen.expr.items[0].items else None
            if inner is not None and inner.kind == "subscript" and not _is_client(inner):
                return False  # `REDIS["caching"].get("HOST")`: something out of a mapping of settings
            return bool(_HOLDER.search(dotted(inner)))
        entry = seen.blob.assigned.get(owner)
        known = cache_keys.local_values(seen, owner) or ([entry.value] if entry and entry.value else [])
        if known:
            return any(_is_client(value) for value in known) or (
                bool(_HOLDER.search(last(owner))) and not any(_is_plain(value) for value in known)
            )
        if owner.startswith("self.") and _is_plain_attribute(seen.blob, owner):
            return False
        return bool(_HOLDER.search(last(owner))) or last(owner) in _PIPES or owner in seen.blob.pipes

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
        yield from self._cleared(joining, own)
        for key in dict.fromkeys(mention.key for mention in own if mention.key):
            users = [f for f in joining.all_with(f"cache-key:{key}", (self.id,)) if f.mention.key == key]
            if users and users[0].view.path == joining.file.path:
                yield self._key(joining, key, users)

    def _kind(self, joining: Joining, found: Found) -> str:
        kind = self._any_kind(joining, found)
        sure = found.mention.decorates or found.mention.options
        return (
            kind if sure or kind not in ("unknown", "own") else ""
        )  # `cache(x)` of the project may be anything

    def _any_kind(self, joining: Joining, found: Found) -> str:
        made = joining.made(found, found.mention.subject)
        for prefix, kind in _KINDS.items():
            if made.startswith(prefix):
                return kind
        owner = found.mention.subject.rpartition(".")[0]
        if owner and _HOLDER.search(owner) and found.mention.verb in _FUNCTIONS:
            return "unknown"
        answer = joining.resolve(found, found.mention.subject)
        inside = answer.target == "internal" and answer.path is not None and bool(answer.symbol_path)
        return "own" if inside and found.mention.verb != "cached_property" else ""

    def _function(self, joining: Joining, mention: Mention, kind: str) -> ArtifactDraft:
        file = joining.file
        kept, of, handler = mention.bound or mention.scope, "", None
        name = qualified(file, kept)
        if not mention.decorates:
            place = Found(mention, file)
            of, handler = joining.function(place, mention.handler)
            if not mention.bound:
                told = handler is not None or joining.resolve(place, mention.handler).target == "external"
                inside = f"{mention.scope}.<locals>." if mention.scope else ""
                written = (
                    mention.handler if mention.handler.replace(".", "").isidentifier() else "<expression>"
                )
                name = of if told else qualified(file, f"{inside}{written}")
        subject = Subject("cache", f"cache:{kind}:{name}", f"cached function {name}")
        subject.notes["via"] = mention.subject
        if of:
            subject.notes["of"] = of
            subject.stand(handler)
            if handler is None:
                subject.doubt(80)
        if kind in ("unknown", "own"):
            subject.doubt(70)
            self._made_by(joining, subject, mention)
        if mention.expr is not None and mention.expr.kind == "call":
            given = positional(mention.expr) if mention.decorates or mention.options else ()
            if given:
                subject.notes["arguments"] = [worded(item) for item in given]
            subject.notes.update((word, worded(value)) for word, value in keywords(mention.expr).items())
        subject.stand(file.ground(mention.span, "declaration"))
        for found in joining.all_with(f"on:{last(kept)}", (self.id,)):
            if found.mention.role != "delete" or not found.mention.subject:
                continue
            answer = joining.resolve(found, found.mention.subject)
            if answer.path == file.path and answer.symbol_path == kept:
                subject.stand(found.view.ground(found.mention.span, "delete"))
                subject.add("cleared_by", function=joining.place(found), via=found.mention.verb)
        return subject.draft()

    def _cleared(self, joining: Joining, own: list[Mention]) -> Iterator[ArtifactDraft]:
        """What is cleared here, and nothing that is read keeps: said, not left out."""
        for subject in dict.fromkeys(m.subject for m in own if m.role == "delete" and m.subject):
            mention = next(m for m in own if m.role == "delete" and m.subject == subject)
            found = Found(mention, joining.file)
            answer = joining.resolve(found, subject)
            kept = (
                any(
                    other.mention.role == "declaration"
                    and (other.mention.bound or other.mention.scope) == answer.symbol_path
                    and self._kind(joining, other)
                    for other in joining.in_file(answer.path)
                    if other.mention.family == self.id
                )
                if answer.target == "internal" and answer.path is not None
                else False
            )
            if not kept:
                key = f"cache:cleared:{qualified(joining.file, '')}:{subject}"
                made = Subject("cache", key, f"results of {answer.qualified or subject} are cleared")
                made.notes["kept_by"] = "nothing that is known"
                made.doubt(60)
                for other in own:
                    if other.role == "delete" and other.subject == subject:
                        place = Found(other, joining.file)
                        made.stand(joining.file.ground(other.span, "delete"))
                        made.add("cleared_by", function=joining.place(place), via=other.verb)
                yield made.draft()

    def _made_by(self, joining: Joining, subject: Subject, mention: Mention) -> None:
        """Stands on the decorator too, where the project made it."""
        answer = joining.resolve(Found(mention, joining.file), mention.subject)
        if answer.target == "internal" and answer.path is not None and answer.symbol_path:
            definition, view = joining.definition(answer.path, answer.symbol_path), joining.view(answer.path)
            if definition is not None and view is not None:
                subject.stand(view.ground_module(definition.header, "decorator"))

    def _key(self, joining: Joining, key: str, users: list[Found]) -> ArtifactDraft:
        title = "every key of a cache" if key == "*" else f"cache key {key}"
        subject = Subject("cache", f"cache:key:{key}", title)
        groups = {"read": "reads", "write": "writes", "delete": "deletes"}
        for found in users:
            subject.stand(found.view.ground(found.mention.span, found.mention.role))
            subject.add(groups[found.mention.role], function=joining.place(found), via=found.mention.verb)
        if subject.has("writes") and not subject.has("deletes"):
            subject.notes["invalidation"] = "no deletion by this key"
        return subject.draft()


def _is_client(value: Expr) -> bool:
    """A call, or a subscript (`caches["default"]`), of what makes a client of a cache."""
    return last(dotted(value)) in _CLIENTS


def _is_plain(value: Expr) -> bool:
    """A mapping of Python's own, whatever it is called; something out of a mapping of settings."""
    return value.kind in ("dict", "list", "set", "subscript", "dictcomp") or (
        value.kind == "call" and last(value.value) in _PLAIN
    )


def _is_plain_attribute(blob: Blob, owner: str) -> bool:
    made = (
        rb"\s*(?::[^=\n]+)?=\s*(?:\{|\[|(?:[\w.]*\.)?(?:"
        + b"|".join(map(str.encode, sorted(_PLAIN)))
        + rb")\()"
    )
    return re.search(rb"\b" + re.escape(owner.encode()) + made, blob.parse.source) is not None
