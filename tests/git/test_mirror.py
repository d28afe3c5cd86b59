from __future__ import annotations

import base64
import http.server
import multiprocessing
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.errors import NotFoundError, RepositoryError
from kb.git import mirror
from kb.git.repository import Repository
from kb.git.urls import parse_url
from tests.gitrepo import GitRepo

USER, TOKEN = "ada-reader", "t0ken/with@odd%parts"
QUOTED = "t0ken%2Fwith%40odd%25parts"


def _mirror(home: Path) -> Path:
    (only,) = [path for path in (home / "mirrors").iterdir() if path.is_dir()]
    return only


def test_a_file_url_is_kept_as_a_bare_mirror_and_read_there(made: GitRepo, home: Path):
    made.write("a.py", "1").commit().branch("side").tag("v1")
    opened = Repository.open(made.folder.as_uri(), home)
    assert opened.is_remote
    assert opened.is_bare
    assert opened.location == made.folder.as_uri()
    assert opened.default_name == "shop"
    assert opened.head() == ("refs/heads/main", made.sha())
    assert opened.branches() == {"main": made.sha(), "side": made.sha()}
    assert opened.tags() == {"v1": made.sha()}
    assert [opened.read(file.oid) for file in opened.files(made.sha())] == [b"1"]
    assert sorted(path.name for path in (home / "mirrors").iterdir()) == sorted(
        [_mirror(home).name, f"{_mirror(home).name}.lock"]
    )


def test_opening_again_fetches_forced_pushes_deleted_branches_and_a_new_default(made: GitRepo, home: Path):
    made.write("a.py", "1").commit().branch("side").write("a.py", "2").commit()
    url = made.folder.as_uri()
    dropped = Repository.open(url, home).head().sha
    made.reset("HEAD~1").write("a.py", "3").commit().git("branch", "-D", "side")
    made.checkout("trunk", new=True).write("a.py", "4").commit()
    again = Repository.open(url, home)
    assert again.head() == ("refs/heads/trunk", made.sha("trunk"))
    assert again.branches() == {"main": made.sha("main"), "trunk": made.sha("trunk")}
    assert again.resolve(dropped).sha == dropped


def test_a_remote_with_a_detached_head_is_followed(made: GitRepo, home: Path):
    made.write("a.py", "1").commit().write("a.py", "2").commit().checkout("HEAD~1")
    url = made.folder.as_uri()
    assert Repository.open(url, home).head() == (None, made.sha())
    made.checkout("main").checkout("main~0")
    made.git("checkout", "-q", "--detach", "main")
    assert Repository.open(url, home).head() == (None, made.sha("main"))


def test_a_remote_without_commits_is_mirrored_and_unborn(made: GitRepo, home: Path):
    with pytest.raises(RepositoryError, match="no commit yet"):
        Repository.open(made.folder.as_uri(), home).resolve()
    made.write("a.py", "1").commit()
    assert Repository.open(made.folder.as_uri(), home).resolve().sha == made.sha()


def test_without_fetching_the_mirror_is_read_as_it_is(made: GitRepo, home: Path):
    made.write("a.py", "1").commit()
    url = made.folder.as_uri()
    with pytest.raises(NotFoundError):
        Repository.open(url, home, fetch=False)
    first = Repository.open(url, home).head().sha
    made.write("a.py", "2").commit()
    assert Repository.open(url, home, fetch=False).head().sha == first
    assert Repository.reopen(url, home, is_remote=True).head().sha == first


def test_a_failed_clone_leaves_no_mirror_and_a_failed_fetch_leaves_the_old_one(made: GitRepo, home: Path):
    made.write("a.py", "1").commit()
    url = made.folder.as_uri()
    with pytest.raises(RepositoryError, match="cannot fetch") as failure:
        Repository.open(url + "-absent", home)
    assert failure.value.hint
    assert "\n" not in str(failure.value)
    assert not [path for path in (home / "mirrors").iterdir() if path.is_dir()]
    first = Repository.open(url, home).head().sha
    made.folder.rename(made.folder.with_name("elsewhere"))
    with pytest.raises(RepositoryError):
        Repository.open(url, home)
    assert Repository.open(url, home, fetch=False).head().sha == first


def test_what_a_killed_clone_left_behind_is_swept_away(made: GitRepo, home: Path):
    made.write("a.py", "1").commit()
    target = mirror.mirror_path(home, parse_url(made.folder.as_uri()))
    left_behind = target.with_name(f"{target.name}.new-killed")
    (left_behind / "mirror").mkdir(parents=True)
    Repository.open(made.folder.as_uri(), home)
    assert not left_behind.exists()


def test_locks_that_a_killed_fetch_left_in_the_mirror_do_not_block_the_next(made: GitRepo, home: Path):
    url = made.write("a.py", "1").commit().folder.as_uri()
    Repository.open(url, home)
    for left_behind in ("packed-refs.lock", "HEAD.lock", "refs/heads/main.lock", "objects/pack/tmp_pack_x"):
        (_mirror(home) / left_behind).write_text("")
    made.write("a.py", "2").commit().git("branch", "side")
    assert Repository.open(url, home).branches() == {"main": made.sha(), "side": made.sha()}
    assert not (_mirror(home) / "objects" / "pack" / "tmp_pack_x").exists()


def test_no_hook_runs_and_none_is_installed(made: GitRepo, home: Path, tmp_path: Path):
    templates = tmp_path / "templates" / "hooks"
    templates.mkdir(parents=True)
    for name in ("post-checkout", "reference-transaction", "post-update"):
        (templates / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
        (templates / name).chmod(0o755)
    (tmp_path / "nobody" / ".gitconfig").write_text(
        f"[init]\n\ttemplateDir = {templates.parent}\n[core]\n\thooksPath = {templates}\n"
    )
    made.write("a.py", "1").commit()
    Repository.open(made.folder.as_uri(), home)
    made.write("a.py", "2").commit()
    Repository.open(made.folder.as_uri(), home)
    assert not (tmp_path / "sprung").exists()
    assert not (_mirror(home) / "hooks").exists()


def test_a_users_rewrite_rule_cannot_bring_in_another_transport(made: GitRepo, home: Path, tmp_path: Path):
    (tmp_path / "nobody" / ".gitconfig").write_text(
        f'[url "ext::sh -c touch% {tmp_path}/sprung "]\n\tinsteadOf = {made.folder.as_uri()}\n'
        "[protocol]\n\tallow = always\n"
    )
    made.write("a.py", "1").commit()
    with pytest.raises(RepositoryError):
        Repository.open(made.folder.as_uri(), home)
    assert not (tmp_path / "sprung").exists()


def test_git_variables_of_a_surrounding_hook_do_not_redirect_the_fetch(
    made: GitRepo, home: Path, monkeypatch, tmp_path: Path
):
    made.write("a.py", "1").commit()
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nobody"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "nobody"))
    assert Repository.open(made.folder.as_uri(), home).resolve().sha == made.sha()


def test_a_missing_git_program_is_named(made: GitRepo, home: Path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RepositoryError, match="git was not found"):
        Repository.open(made.folder.as_uri(), home)


def _fetch_and_report(url: str, home: Path, results: multiprocessing.Queue) -> None:
    results.put(Repository.open(url, home).resolve().sha)


def test_processes_that_fetch_one_remote_at_once_end_with_one_mirror(made: GitRepo, home: Path):
    made.write("a.py", "1").commit()
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [
        context.Process(target=_fetch_and_report, args=(made.folder.as_uri(), home, results))
        for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    shas = {results.get(timeout=60) for _ in workers}
    for worker in workers:
        worker.join()
    assert shas == {made.sha()}
    assert _mirror(home).is_dir()


def test_waiting_for_another_fetch_ends_at_the_timeout(made: GitRepo, home: Path):
    url = parse_url(made.write("a.py", "1").commit().folder.as_uri())
    mirror.update_mirror(home, url)
    with (
        mirror._only_one(mirror.mirror_path(home, url), url, None),
        pytest.raises(RepositoryError, match="another process"),
    ):
        Repository.open(url.location, home, timeout=0.1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
def test_another_users_repository_behind_a_file_url_is_refused_with_the_way_to_allow_it(
    made: GitRepo, home: Path
):
    made.write("a.py", "1").commit()
    subprocess.run(["chown", "-R", "12345:12345", made.folder], check=True)
    with pytest.raises(RepositoryError) as failure:
        Repository.open(made.folder.as_uri(), home)
    assert "safe.directory" in (failure.value.hint or "")


class _Guarded(http.server.SimpleHTTPRequestHandler):
    """Serves files to whoever brings the right user and token, and keeps what it was asked."""

    asked: list[str | None]
    stalls: threading.Event | None = None

    def do_GET(self) -> None:
        self.asked.append(self.headers.get("Authorization"))
        if self.stalls is not None:
            self.stalls.wait(30)
        if (
            self.headers.get("Authorization")
            == "Basic " + base64.b64encode(f"{USER}:{TOKEN}".encode()).decode()
        ):
            super().do_GET()
            return
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="kb"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Keeps quiet."""


@pytest.fixture
def server(
    made: GitRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, type[_Guarded]]]:
    """A loopback https server of the repository; ("127.0.0.1:port", handler)."""
    bare = made.write("a.py", "1").commit().bare_clone(tmp_path / "served" / "shop.git")
    made.git("--git-dir", bare, "update-server-info")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-out", certificate, "-keyout", key),
        ],
        check=True,
        capture_output=True,
    )
    monkeypatch.setenv("GIT_SSL_CAINFO", str(certificate))
    handler = type("Handler", (_Guarded,), {"asked": []})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def serve(*arguments: object) -> _Guarded:
        return handler(*arguments, directory=str(tmp_path / "served"))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as running:
        running.socket = context.wrap_socket(running.socket, server_side=True)
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"127.0.0.1:{running.server_address[1]}", handler
        running.shutdown()
        thread.join()


def _holds(folder: Path, secret: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_credentials_in_a_url_open_it_and_stay_nowhere(
    server: tuple[str, type[_Guarded]], made: GitRepo, home: Path, tmp_path: Path
):
    address, handler = server
    stored = tmp_path / "nobody" / "stored"
    (tmp_path / "nobody" / ".gitconfig").write_text(f"[credential]\n\thelper = store --file={stored}\n")
    for _ in range(2):
        opened = Repository.open(f"https://{USER}:{QUOTED}@{address}/shop.git", home)
    assert opened.resolve().sha == made.sha()
    assert opened.location == f"https://{address}/shop"
    assert any(handler.asked)
    assert not stored.exists()
    for secret in (TOKEN, QUOTED, USER):
        assert _holds(home, secret) == []
        assert secret not in repr(opened)


def test_a_users_own_credential_helper_is_asked_where_the_url_holds_none(
    server: tuple[str, type[_Guarded]], made: GitRepo, home: Path, tmp_path: Path
):
    address, _ = server
    stored = tmp_path / "nobody" / "stored"
    stored.write_text(f"https://{USER}:{QUOTED}@{address}\n")
    (tmp_path / "nobody" / ".gitconfig").write_text(f"[credential]\n\thelper = store --file={stored}\n")
    assert Repository.open(f"https://{address}/shop.git", home).resolve().sha == made.sha()


@pytest.mark.parametrize("credentials", ["", f"{USER}:wrong-{QUOTED}@", f"wrong-{QUOTED}@"])
def test_wrong_credentials_are_refused_without_asking_or_repeating_them(
    credentials: str, server: tuple[str, type[_Guarded]], home: Path
):
    with pytest.raises(RepositoryError) as failure:
        Repository.open(f"https://{credentials}{server[0]}/shop.git", home)
    assert "credentials" in (failure.value.hint or "")
    for secret in (TOKEN, QUOTED):
        assert secret not in str(failure.value)
    assert _holds(home, "wrong") == []


def test_a_remote_that_does_not_answer_is_given_up_at_the_timeout(
    server: tuple[str, type[_Guarded]], home: Path
):
    handler = server[1]
    handler.stalls = threading.Event()
    try:
        with pytest.raises(RepositoryError, match=r"took longer than 0\.5 s"):
            Repository.open(f"https://{server[0]}/shop.git", home, timeout=0.5)
    finally:
        handler.stalls.set()
    assert not [path for path in (home / "mirrors").iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("complaint", "said"),
    [
        (
            "ssh: connect to host forge port 22: Connection refused\nfatal: Could not read from remote repository.\n",
            "ssh: connect to host forge port 22: Connection refused",
        ),
        (
            "Host key verification failed.\nfatal: Could not read from remote repository.\n",
            "Host key verification failed.",
        ),
        (
            "fatal: unable to connect to forge:\nforge[0: 192.0.2.1]: errno=Connection refused\n",
            "fatal: unable to connect to forge: forge[0: 192.0.2.1]: errno=Connection refused",
        ),
        ("remote: not here\nfatal: repository not found\n", "remote: not here"),
        ("", "git failed"),
    ],
)
def test_the_line_of_gits_complaint_that_says_why_is_the_one_that_is_shown(
    complaint: str, said: str, home: Path, tmp_path: Path, monkeypatch
):
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{complaint}END\nexit 128\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")
    with pytest.raises(RepositoryError) as failure:
        Repository.open("ssh://git@forge/shop.git", home)
    assert str(failure.value) == f"cannot fetch ssh://git@forge/shop: {said}"


def test_an_unknown_commit_of_a_remote_is_told_with_the_url_and_not_with_the_mirrors_folder(
    made: GitRepo, home: Path
):
    remote = Repository.open(f"file://{made.folder}", home)
    with pytest.raises(NotFoundError) as failure:
        remote.resolve("nosuch")
    assert str(failure.value) == f"no commit 'nosuch' in the repository file://{made.folder}"
    assert failure.value.hint == f"list its names with: git ls-remote file://{made.folder}"
