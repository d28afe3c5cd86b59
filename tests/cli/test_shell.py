from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kb import __version__
from kb.cli.main import kb, run
from kb.errors import (
    DatabaseError,
    GroundingError,
    IntegrityError,
    KbError,
    NotFoundError,
    RepositoryError,
    UsageError,
)

HEAVY = (
    "sqlalchemy",
    "psycopg",
    "alembic",
    "pygit2",
    "mcp",
    "numpy",
    "pydantic",
    "rich",
    "tree_sitter",
    "torch",
    "onnxruntime",
    "sentence_transformers",
    "openai",
    "wordllama",
)

LOADED_AFTER = """
import sys
from kb.cli.main import run
code = run(sys.argv[1:])
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(code)
"""


def _shell(arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with arguments and redirections as a shell makes them."""
    command = f"{shlex.quote(sys.executable)} {arguments}"
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)


def _run_fresh(*arguments: str, environment: dict[str, str] | None = None, **options):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | (environment or {}),
        **options,
    )


@pytest.fixture
def fail_with(monkeypatch):
    """Adds a command `fail` to kb that raises what the test asks for."""

    def add(error: BaseException) -> None:
        @click.command("fail")
        @click.option("--json", "as_json", is_flag=True)
        def fail(as_json: bool) -> None:
            raise error

        monkeypatch.setitem(kb.commands, "fail", fail)

    return add


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("--version",), ("index", "--help"), ("db", "--help"), ("show", "--help"), ("nonsense",)],
    ids=" ".join,
)
def test_showing_help_imports_no_database_no_git_and_no_model_library(arguments):
    done = _run_fresh("-c", LOADED_AFTER, *arguments)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "click" in loaded
    assert loaded & set(HEAVY) == set()


def test_version_is_the_package_version_on_stdout():
    done = _run_fresh("-m", "kb", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"kb {__version__}\n", "")


def test_help_lists_every_command_with_a_line_of_its_own(capsys):
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    for name in kb.list_commands(click.Context(kb)):
        lines = [line for line in shown.splitlines() if line.strip().split("  ")[0] == name]
        assert len(lines) == 1, name
        assert len(lines[0].split(maxsplit=1)) == 2, f"{name} has no help"


def test_kb_alone_answers_with_its_help_on_stderr_and_the_code_for_usage(capsys):
    assert run([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Usage: kb ")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KbError("m"), 1),
        (UsageError("m"), 2),
        (NotFoundError("m"), 3),
        (DatabaseError("m"), 4),
        (RepositoryError("m"), 5),
        (IntegrityError("m"), 6),
        (GroundingError("m"), 6),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_each_error_of_the_family_ends_with_its_documented_code(fail_with, error, code):
    fail_with(error)
    assert run(["fail"]) == code


def test_an_error_is_one_line_and_its_hint_another_both_on_stderr(fail_with, capsys):
    fail_with(NotFoundError("no key `x`\nin shop", hint="run `kb status`"))
    assert run(["fail"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "kb: error: no key `x` in shop\nhint: run `kb status`\n"


def test_an_error_cannot_smuggle_escape_sequences_to_the_terminal(fail_with, capsys):
    fail_with(RepositoryError("cannot read \x1b[31mred\x1b[0m\u202egnp.exe\rkb: all is well"))
    run(["fail"])
    assert capsys.readouterr().err == (
        "kb: error: cannot read \\x1b[31mred\\x1b[0m\\u202egnp.exe kb: all is well\n"
    )


def test_with_json_an_error_is_a_document_on_stdout_as_well(fail_with, capsys):
    fail_with(NotFoundError("no such key", hint="look", key="symbol:x", span=b"\x01\xff"))
    assert run(["fail", "--json"]) == 3
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        "schema": "kb.error/1",
        "error": {
            "type": "NotFoundError",
            "message": "no such key",
            "hint": "look",
            "exit_code": 3,
            "data": {"key": "symbol:x", "span": "01ff"},
        },
    }
    assert captured.err == "kb: error: no such key\nhint: look\n"


def test_an_unknown_command_names_the_nearest_one(capsys):
    assert run(["idnex"]) == 2
    assert capsys.readouterr().err == (
        "kb: error: No such command 'idnex'. Did you mean 'index'?\nhint: see `kb --help`\n"
    )


def test_an_unknown_option_points_at_the_help_of_its_command(capsys):
    assert run(["index", "--nope", "."]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("kb: error: No such option")
    assert captured.err.endswith("hint: see `kb index --help`\n")


def test_a_defect_shows_where_it_happened_and_says_that_it_is_one(fail_with, capsys):
    fail_with(ZeroDivisionError("division by zero"))
    assert run(["fail"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback (most recent call last):\n")
    assert shown.endswith(
        "kb: error: ZeroDivisionError: division by zero\n"
        "hint: this is a defect in kb; please report it with the lines above\n"
    )


def test_an_interrupt_inside_a_command_exits_130(fail_with, capsys):
    fail_with(KeyboardInterrupt())
    assert run(["fail"]) == 130
    assert capsys.readouterr().err.strip() == "kb: error: interrupted; what was sealed before is unchanged"


def test_ctrl_c_on_the_process_exits_130_without_a_traceback():
    script = (
        "import sys, time, click\n"
        "from kb.cli.main import kb, run\n"
        "@kb.command('wait')\n"
        "def wait():\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "sys.exit(run(['wait']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in shown


def test_a_reader_that_leaves_early_is_no_failure_and_no_noise():
    script = (
        "import sys\n"
        "from kb.cli.main import kb, run\n"
        "from kb.cli.output import print_lines\n"
        "@kb.command('many')\n"
        "def many():\n"
        "    print_lines('x' * 100 for _ in range(100_000))\n"
        "sys.exit(run(['many']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        shown = process.stderr.read()
        process.wait(timeout=30)
    assert (process.returncode, shown) == (0, b"")


@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_streams_that_the_caller_closed_are_no_defect(streams):
    done = _shell(f"-m kb --version {streams}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("arguments", ["--help", "serve --help", "nosuch --json"])
def test_a_full_disk_under_stdout_is_one_line_and_no_traceback(arguments):
    done = _shell(f"-m kb {arguments} >/dev/full")
    assert done.returncode in {1, 2}
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[0] in {
        "kb: error: No space left on device",
        "kb: error: No such command 'nosuch'.",
    }


def test_what_the_machine_refuses_names_the_place_and_is_no_defect(fail_with, capsys):
    fail_with(PermissionError(13, "Permission denied", "/nowhere/kb"))
    assert run(["fail"]) == 1
    _, err = capsys.readouterr()
    assert err.splitlines()[0] == "kb: error: /nowhere/kb: Permission denied"
    assert "KB_HOME" in err
    assert "defect" not in err


def test_a_command_may_choose_its_exit_code(monkeypatch):
    @click.command("choose")
    @click.pass_context
    def choose(ctx: click.Context) -> None:
        ctx.exit(1)

    monkeypatch.setitem(kb.commands, "choose", choose)
    assert run(["choose"]) == 1


def test_starting_up_for_help_stays_under_the_cost_of_one_heavy_import():
    # A count of modules, not a clock: SQLAlchemy alone brings more than two hundred.
    done = _run_fresh("-c", "import sys; import kb.cli.main; print(len(sys.modules))")
    assert int(done.stdout) < 250
