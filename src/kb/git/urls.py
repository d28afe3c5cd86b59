"""Where a remote repository lives, told apart from the secret that opens it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

from kb.errors import UsageError

DEFAULT_PORTS = {"https": 443, "ssh": 22, "git": 9418, "file": None}
SCP_LIKE = re.compile(r"(?:(?P<user>[^/@:\s]+)@)?(?P<host>[^/@:\s]+|\[[^\]\s]+\]):(?P<path>[^\s].*)\Z")
TRANSPORT_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
ANY_CREDENTIALS = re.compile(r"(?<=://)[^/@\s'\"]*@")
HINT = "give a path, or a URL with https, ssh, git or file"


@dataclass(frozen=True, slots=True)
class RemoteUrl:
    """A URL that kb may fetch from, its credentials kept apart and out of every rendering."""

    location: str
    """The identity: lower-case scheme and host, no default port, no credentials, no trailing `/`, no `.git`.

    The user of an ssh URL belongs to the address and stays; `git@host:org/repo` and
    `ssh://git@host/org/repo` are one location, as they are on every forge.
    """
    fetch_url: str
    """What git is given: as written, without credentials."""
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """Last part of the path: what the repository is called if nobody says otherwise."""
        return unquote(self.location.rsplit("/", 1)[-1])

    def redact(self, text: str) -> str:
        """The text without this URL's secrets, and without any other credentials in a URL."""
        for secret in (self.password, self.username):
            for written in (secret, quote(secret, safe=""), quote(secret)):
                if written:
                    text = text.replace(written, "***")
        return ANY_CREDENTIALS.sub("", text)


def looks_remote(where: str) -> bool:
    """Whether text names a remote (a URL, an scp-like address, a transport) and not a path."""
    return "://" in where or bool(TRANSPORT_HELPER.match(where)) or bool(SCP_LIKE.match(where))


def parse_url(text: str) -> RemoteUrl:
    """The remote that `text` names.

    Raises:
        UsageError: another transport than https, ssh, git and file, or no URL that git could fetch.
            Its message holds no part of the URL that may be secret.
    """
    if text.startswith("-") or not text.isprintable():
        raise UsageError("a repository's URL cannot begin with '-' or hold control characters", hint=HINT)
    if TRANSPORT_HELPER.match(text):
        raise UsageError(f"the transport '{text.split('::', 1)[0]}::' is not allowed", hint=HINT)
    if "://" not in text:
        return _scp_like(text)
    scheme = text.split("://", 1)[0].lower()
    if scheme not in DEFAULT_PORTS:
        raise UsageError(f"the transport '{scheme}' is not allowed", hint=HINT)
    return _file(text) if scheme == "file" else _network(scheme, text)


def _network(scheme: str, text: str) -> RemoteUrl:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise UsageError(f"this {scheme} URL cannot be read", hint=HINT) from None
    if not host or host.startswith("-") or not parts.path.strip("/"):
        raise UsageError(f"this {scheme} URL names no host or no path", hint=HINT)
    if parts.query or parts.fragment:
        raise UsageError(f"a repository's {scheme} URL has no '?' or '#'", hint=HINT)
    user = parts.username or ""
    if user.startswith("-"):
        raise UsageError(f"the user of an {scheme} URL cannot begin with '-'", hint=HINT)
    shown_host = f"[{host}]" if ":" in host else host
    authority = shown_host if port in (None, DEFAULT_PORTS[scheme]) else f"{shown_host}:{port}"
    if scheme == "ssh":
        address = f"{user}@{authority}" if user else authority
        return RemoteUrl(f"ssh://{address}{_trimmed(parts.path)}", f"ssh://{address}{parts.path}")
    location = f"{scheme}://{authority}{_trimmed(parts.path)}"
    fetch_url = f"{scheme}://{authority}{parts.path}"
    username, password = unquote(user), unquote(parts.password or "")
    if not (username + password).isprintable():
        raise UsageError(f"the credentials of this {scheme} URL hold control characters", hint=HINT)
    return RemoteUrl(location, fetch_url, username, password)


def _file(text: str) -> RemoteUrl:
    rest = text.split("://", 1)[1]
    host, slash, path = rest.partition("/")
    if host.lower() not in ("", "localhost") or not slash or not path.strip("/"):
        raise UsageError("a file URL has the form file:///path", hint=HINT)
    return RemoteUrl(f"file://{_trimmed('/' + path)}", f"file:///{path}")


def _scp_like(text: str) -> RemoteUrl:
    found = SCP_LIKE.match(text)
    if found is None or re.match(r"[^/@]*@[^/]*:", found["path"]):
        raise UsageError("this is neither a path nor a URL that kb can fetch from", hint=HINT)
    user, host, path = found["user"] or "", found["host"].lower(), found["path"]
    if host.startswith("-") or user.startswith("-") or path.startswith("-") or not path.strip("/"):
        raise UsageError("the parts of a repository's address cannot begin with '-' or be empty", hint=HINT)
    address = f"{user}@{host}" if user else host
    return RemoteUrl(f"ssh://{address}{_trimmed('/' + path)}", f"{address}:{path}")


def _trimmed(path: str) -> str:
    """A path with one slash before it and neither slashes nor `.git` after it."""
    return "/" + path.strip("/").removesuffix(".git").rstrip("/")
