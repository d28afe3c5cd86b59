from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from kb.cli.main import kb, run
from kb.cli.output import jsonable, print_document, print_lines
from kb.cli.render.words import columns, counted, human_size, line_range, short_sha
from kb.cli.terminal import one_line, printable, strong


class Pair(NamedTuple):
    path: str
    digest: bytes


@dataclass
class Report:
    sha: str
    pairs: list[Pair]
    where: Path


def test_a_document_is_an_envelope_around_the_records_fields(capsys):
    print_document("sample", Report("ab", [Pair("a.py", b"\x00\x10")], Path("x/y")))
    assert json.loads(capsys.readouterr().out) == {
        "schema": "kb.sample/1",
        "sha": "ab",
        "pairs": [{"path": "a.py", "digest": "0010"}],
        "where": "x/y",
    }


def test_a_list_travels_under_items():
    assert jsonable((1, "a", None, True)) == [1, "a", None, True]


def test_a_payload_cannot_overwrite_the_envelopes_schema():
    with pytest.raises(ValueError, match="sample"):
        print_document("sample", {"schema": "mine"})


def test_other_scripts_are_kept_readable_in_json(capsys):
    print_document("sample", {"title": "Größe Размер"})
    assert "Größe Размер" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("plain\ttext\nsecond", "plain\ttext\nsecond"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\x9bb", "a\\x9bb"),
        ("x\u202ecod.exe", "x\\u202ecod.exe"),
        ("nul\x00", "nul\\x00"),
        ("Größe", "Größe"),
    ],
)
def test_text_from_a_repository_cannot_control_the_terminal(hostile, shown):
    assert printable(hostile) == shown


def test_one_line_folds_whitespace():
    assert one_line("a\n  b\tc ") == "a b c"


def test_no_colour_reaches_a_pipe(capsys):
    print_lines([strong("title")])
    assert capsys.readouterr().out == "title\n"


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "anything"}, False),
        ({"TERM": "dumb"}, False),
    ],
    ids=str,
)
def test_on_a_terminal_no_color_is_honoured(variables, coloured):
    import os
    import pty
    import subprocess
    import sys

    script = (
        "import sys\n"
        "from kb.cli.main import kb, run\n"
        "from kb.cli.output import print_lines\n"
        "from kb.cli.terminal import strong\n"
        "@kb.command('bold')\n"
        "def bold():\n"
        "    print_lines([strong('title')])\n"
        "sys.exit(run(['bold']))\n"
    )
    clean = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    master, slave = pty.openpty()
    try:
        environment = clean | {"TERM": "xterm"} | variables
        subprocess.run([sys.executable, "-c", script], stdout=slave, check=True, timeout=30, env=environment)
        shown = os.read(master, 1000).decode()
    finally:
        os.close(slave)
        os.close(master)
    assert ("\x1b[1m" in shown) == coloured
    assert "title" in shown


def test_words_for_counts_ranges_and_sizes():
    assert [counted(0, "gap"), counted(1, "gap"), counted(1234, "file")] == ["0 gaps", "1 gap", "1,234 files"]
    assert counted(2, "repository", "repositories") == "2 repositories"
    assert [line_range("a.py", None, None), line_range("a.py", 3, 3), line_range("a.py", 3, 7)] == [
        "a.py",
        "a.py:3",
        "a.py:3-7",
    ]
    assert [human_size(812), human_size(14_200_000), human_size(3_100_000_000_000)] == [
        "812 B",
        "14.2 MB",
        "3.1 TB",
    ]
    assert short_sha("4f1c2a9b8d3e" + "0" * 28) == "4f1c2a9b8d3e"
    assert short_sha("worktree:4f1c2a9b8d3e" + "0" * 28) == "worktree:4f1c2a9b8d3e"


def test_columns_align_and_leave_no_trailing_blanks():
    assert list(columns([("a", "bb", ""), ("ccc", "d", "e")])) == ["  a    bb", "  ccc  d   e"]


def test_every_command_answers_help_without_failing(capsys):
    import click

    def walk(command: click.Command, path: list[str]) -> None:
        assert run([*path, "--help"]) == 0
        assert capsys.readouterr().out.startswith("Usage: kb " + " ".join(path))
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                walk(command.get_command(context, name), [*path, name])

    walk(kb, [])
