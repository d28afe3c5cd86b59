from __future__ import annotations

from pathlib import Path

import pytest

from kb.errors import UsageError
from kb.git.repository import Repository
from kb.git.urls import looks_remote, parse_url

SECRET = "s3cr3t-t0ken"


@pytest.mark.parametrize(
    ("written", "location"),
    [
        ("https://Example.ORG/Org/Repo.git", "https://example.org/Org/Repo"),
        ("HTTPS://example.org:443/Org/Repo/", "https://example.org/Org/Repo"),
        ("https://example.org:8443/a//", "https://example.org:8443/a"),
        (f"https://me:{SECRET}@example.org/a/b.git/", "https://example.org/a/b"),
        (f"https://{SECRET}@example.org/a/b", "https://example.org/a/b"),
        ("https://[::1]:8443/a", "https://[::1]:8443/a"),
        ("ssh://git@Example.org:22/a/b.git", "ssh://git@example.org/a/b"),
        ("ssh://git@example.org:2222/a/b", "ssh://git@example.org:2222/a/b"),
        (f"ssh://git:{SECRET}@example.org/a/b", "ssh://git@example.org/a/b"),
        ("ssh://example.org/a/b", "ssh://example.org/a/b"),
        ("git@Example.org:a/b.git", "ssh://git@example.org/a/b"),
        ("git@example.org:/a/b", "ssh://git@example.org/a/b"),
        ("example.org:a/b", "ssh://example.org/a/b"),
        ("git://example.org:9418/a/b.git", "git://example.org/a/b"),
        (f"git://me:{SECRET}@example.org/a", "git://example.org/a"),
        ("file:///srv/git/repo.git/", "file:///srv/git/repo"),
        ("file://localhost/srv/repo", "file:///srv/repo"),
        ("file:///srv/repo/.git", "file:///srv/repo"),
    ],
)
def test_a_location_is_the_normalised_url_without_credentials(written: str, location: str):
    assert parse_url(written).location == location
    assert parse_url(location).location == location
    assert SECRET not in parse_url(written).fetch_url
    assert SECRET not in repr(parse_url(written))


def test_git_is_given_the_address_as_it_was_written():
    assert parse_url("git@example.org:a/b.git").fetch_url == "git@example.org:a/b.git"
    assert parse_url("https://example.org/a/b.git").fetch_url == "https://example.org/a/b.git"
    assert (
        parse_url("ssh://git@example.org:2222/~me/b.git").fetch_url == "ssh://git@example.org:2222/~me/b.git"
    )


def test_a_remote_is_named_after_the_last_part_of_its_path():
    assert parse_url("git@example.org:a/my%20repo.git").name == "my repo"


@pytest.mark.parametrize(
    "written",
    [
        "ext::sh -c 'touch /tmp/owned'",
        "ext::ssh://example.org/a",
        "fd::17",
        "transport-x::address",
        f"http://me:{SECRET}@example.org/a",
        f"ftp://me:{SECRET}@example.org/a",
        "ext://example.org/a",
        "--upload-pack=evil://x/y",
        "-oProxyCommand=evil:x",
        "ssh://-oProxyCommand=evil/a",
        "ssh://-l@example.org/a",
        "-host:path",
        "git@-host:path",
        "-x@host:path",
        "host:-path",
        f"me:{SECRET}@example.org:a/b",
        "https:///a",
        "https://example.org",
        "https://example.org:port/a",
        f"https://example.org/a?private_token={SECRET}",
        f"https://example.org/a#{SECRET}",
        "file://example.org/a",
        "file://",
        "file:///",
        f"https://me:{SECRET}@example.org/a\nb",
        f"https://me:{SECRET}@[::1/a",
        f"https://me:{SECRET}%0ahost=elsewhere.org@example.org/a",
    ],
)
def test_other_transports_and_forged_addresses_are_refused_without_repeating_secrets(
    written: str, tmp_path: Path
):
    with pytest.raises(UsageError) as failure:
        Repository.open(written, tmp_path / "home")
    assert SECRET not in str(failure.value)
    assert SECRET not in str(failure.value.__cause__ or "")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("text", [".", "src/kb", "/srv/repo", "./host:path", "../x:y", "C", "~/repo"])
def test_paths_do_not_look_remote(text: str):
    assert not looks_remote(text)


def test_redaction_removes_secrets_as_written_and_as_decoded_and_those_of_other_urls():
    url = parse_url("https://me:p%40ss%2Fw@example.org/a")
    said = url.redact("for p%40ss%2Fw p@ss/w https://other:thing@elsewhere.org/x")
    assert said == "for *** *** https://elsewhere.org/x"
