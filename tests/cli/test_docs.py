from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from kb.cli.main import kb
from kb.cli.reference import main, reference
from kb.config import Settings
from kb.model.served import Freshness, Provenance, Unit
from kb.retrieve.gaps import GapList
from kb.retrieve.show import Shown
from kb.retrieve.status import Status
from kb.snapshot.backfill import BackfillReport
from kb.snapshot.gc import GcReport
from kb.snapshot.hooks import HookReport
from kb.snapshot.requests import IndexReport

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def _commands(command: click.Command = kb, path: str = "kb") -> dict[str, click.Command]:
    found = {path: command}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found |= _commands(command.get_command(context, name), f"{path} {name}")
    return found


def _shell_lines() -> list[tuple[str, str]]:
    """(page, command) of every `kb` command that a page shows as shell."""
    found = []
    for page in PAGES:
        for block in re.findall(
            r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            found += [(page.name, line) for line in block.splitlines() if line.startswith("kb ")]
    return found


def test_the_reference_is_what_the_commands_say():
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == reference(), "run `make docs`"


def test_the_reference_is_written_where_it_is_asked_for(tmp_path):
    assert main([str(tmp_path / "cli.md")]) == 0
    assert (tmp_path / "cli.md").read_text(encoding="utf-8").startswith("# Command line\n")


@pytest.mark.parametrize("path", sorted(_commands()))
def test_every_command_and_every_option_of_it_is_documented(path):
    command = _commands()[path]
    shown = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", shown, flags=re.MULTILINE)
    mine = next(part for part in section if part.splitlines()[0] == path)
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{path} {parameter.name} has no help"
            assert parameter.opts[-1] in mine
        else:
            assert parameter.make_metavar(click.Context(command)) in mine


def test_every_top_level_command_is_in_the_readme():
    shown = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in kb.list_commands(click.Context(kb)) if f"`kb {name}" not in shown] == []


def test_every_exit_code_is_documented():
    shown = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (\d+) \|", shown, re.MULTILINE) == ["0", "1", "2", "3", "4", "5", "6", "130"]


def _variables() -> list[str]:
    """Each KB_* variable: one per setting, and whatever else the code and the tests name."""
    named = {
        found
        for folder in ("src", "tests")
        for path in (ROOT / folder).rglob("*.py")
        for found in re.findall(r"\bKB_[A-Z][A-Z_]*\b", path.read_text(encoding="utf-8"))
    }
    return sorted(named - INTERNAL | {f"KB_{field.upper()}" for field in Settings.model_fields})


INTERNAL = {"KB_URL_USERNAME", "KB_URL_PASSWORD"}  # kb sets them for the git it starts; nobody else does


@pytest.mark.parametrize("variable", _variables())
def test_every_variable_is_documented(variable):
    assert f"`{variable}`" in (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("page", "line"), _shell_lines(), ids=lambda value: value)
def test_every_kb_command_that_a_page_shows_is_one_that_kb_accepts(page, line):
    words = shlex.split(line, comments=True)
    command: click.Command = kb
    context = click.Context(kb, info_name="kb")
    if words[1:] == ["--version"]:
        return
    rest = words[1:]
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command = found
        context = click.Context(command, info_name=name, parent=context)
    command.make_parser(context).parse_args(list(rest))


def test_every_make_target_that_a_page_shows_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    shown = {
        target
        for page in PAGES
        for target in re.findall(r"(?:^|`)make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert shown - targets == set()


def test_every_link_between_pages_leads_somewhere():
    broken = [
        (page.name, target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


@pytest.mark.parametrize(
    ("document", "record"),
    [
        ("kb.index/1", IndexReport),
        ("kb.show/1", Shown),
        ("kb.gaps/1", GapList),
        ("kb.status/1", Status),
        ("kb.backfill/1", BackfillReport),
        ("kb.gc/1", GcReport),
        ("kb.hook.status/1", HookReport),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_field_of_a_document_is_documented(document, record):
    shown = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    (row,) = [line for line in shown.splitlines() if line.startswith(f"| `{document}`")]
    fields = record.model_fields if hasattr(record, "model_fields") else record.__dataclass_fields__
    assert [name for name in fields if f"`{name}`" not in row] == []


def test_every_field_of_the_unit_is_documented():
    shown = (ROOT / "docs" / "json.md").read_text(encoding="utf-8").partition("## The unit")[2]
    fields = {name for model in (Unit, Provenance, Freshness) for name in model.model_fields}
    assert {name for name in fields if f"`{name}`" not in shown} == set()


def test_every_page_of_the_documentation_is_in_its_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert {name for name in pages if f"]({name})" not in index} == set()
