"""`introspect` refuses what it cannot run, and never runs anything unprotected."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.errors import UsageError
from kb.introspect import seccomp
from kb.introspect.run import ApplicationFailedError, Request, SandboxUnavailableError, introspect


@pytest.mark.parametrize("target", ["", "app.main:", "app/main:app", "-c:app", "app.main:app()", "a:b:c"])
def test_a_target_that_names_no_attribute_is_a_usage_error(tmp_path: Path, target: str) -> None:
    with pytest.raises(UsageError):
        introspect(Request(target, tmp_path))


def test_a_folder_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        introspect(Request("a:b", tmp_path / "absent"))


def test_an_interpreter_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no interpreter"):
        introspect(Request("a:b", tmp_path, python=tmp_path / "python"))


def test_without_any_protection_nothing_is_run(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("b = 1")
    with pytest.raises(SandboxUnavailableError):
        introspect(Request("a:b", tmp_path, protections=()))


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(seccomp.SeccompUnavailableError):
        seccomp.build_program("riscv64", 1, deny_writes=True)


def test_an_object_of_no_known_framework_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("b = 1")
    with pytest.raises(ApplicationFailedError, match="of no framework"):
        introspect(Request("a:b", tmp_path))


def test_a_factory_is_called(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "from starlette.applications import Starlette\n"
        "from starlette.routing import Route\n"
        "def home(request): ...\n"
        "def create_app():\n    return Starlette(routes=[Route('/home', home)])\n"
    )
    answer = introspect(Request("a:create_app", tmp_path, factory=True))
    assert answer.framework == "starlette"
    assert answer.routes == [
        {"path": "/home", "methods": ["GET", "HEAD"], "handler": "a.home", "name": "home"}
    ]
