"""The entry point `kb`: the table of commands, and the one place where a failure becomes an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from kb import __version__
from kb.cli.failures import describe, report
from kb.cli.lazy import LazyGroup
from kb.cli.output import ReaderGoneError, flush, silence_stdout
from kb.cli.terminal import wants_color
from kb.errors import UsageError

_COMMANDS = "kb.cli.commands"
SECTIONS = {
    "Index": {
        "index": f"{_COMMANDS}.index",
        "backfill": f"{_COMMANDS}.backfill",
        "watch": f"{_COMMANDS}.watch",
        "hook": f"{_COMMANDS}.hook",
        "embed": f"{_COMMANDS}.embed",
    },
    "Read": {
        "search": f"{_COMMANDS}.search",
        "status": f"{_COMMANDS}.status",
        "show": f"{_COMMANDS}.show",
        "gaps": f"{_COMMANDS}.gaps",
        "diff": f"{_COMMANDS}.diff",
        "log": f"{_COMMANDS}.log",
    },
    "Serve": {
        "serve": f"{_COMMANDS}.serve",
        "mcp-config": f"{_COMMANDS}.mcp_config",
    },
    "Keep": {
        "repo": f"{_COMMANDS}.repo",
        "gc": f"{_COMMANDS}.gc",
        "db": f"{_COMMANDS}.db",
    },
    "Evaluate": {
        "eval": f"{_COMMANDS}.eval",
        "introspect": f"{_COMMANDS}.introspect",
    },
}
"""Section of the help page -> command -> module; a new command is one module and one row here."""

OK = 0
_EPILOG = (
    "Exit codes: 0 success, 1 failure, 2 usage, 3 not found, 4 database, 5 repository, "
    "6 grounding or integrity, 130 interrupted."
)


@click.group(
    cls=LazyGroup,
    sections=SECTIONS,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="kb", message="%(prog)s %(version)s")
@click.pass_context
def kb(ctx: click.Context) -> None:
    """Knowledge about a repository that can prove itself: every unit points at lines of a commit."""
    ctx.color = wants_color(sys.stdout)


def run(arguments: Sequence[str]) -> int:
    """Runs one command; returns its exit code, with every failure reported as documented."""
    try:
        code = kb.main(args=list(arguments), prog_name="kb", standalone_mode=False)
        flush()
    except ReaderGoneError:
        silence_stdout()
        return OK
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the edge: all of them become an exit code
        failure = describe(_of_arguments(error, arguments))
        report(failure, as_json="--json" in arguments)
        return failure.exit_code
    return code if isinstance(code, int) else OK


def _of_arguments(error: BaseException, arguments: Sequence[str]) -> BaseException:
    """The error, or where text was wanted and an argument's bytes are none, that."""
    if isinstance(error, UnicodeEncodeError):
        for argument in arguments:
            shown = os.fsencode(argument).decode("utf-8", "backslashreplace")
            if shown != argument:
                return UsageError(f"the argument {shown} is no text: it is not UTF-8")
    return error


def main() -> int:
    """What the installed `kb` calls; its return value is the exit code."""
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
