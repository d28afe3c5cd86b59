"""From any exception to what the user sees: one line, a hint, an exit code, and a document for `--json`."""

from __future__ import annotations

import errno
import traceback
from dataclasses import dataclass, field

import click

from kb.cli.output import ReaderGoneError, flush, print_document, silence_stdout
from kb.cli.terminal import one_line
from kb.errors import KbError

INTERRUPTED = 130
REFUSALS = {
    errno.ENOSPC: "free some space and run the command again",
    errno.EDQUOT: "free some space and run the command again",
    errno.EROFS: "kb keeps its data in KB_HOME; name a folder that can be written",
    errno.EACCES: "kb keeps its data in KB_HOME; name a folder that can be written",
    errno.EPERM: "kb keeps its data in KB_HOME; name a folder that can be written",
    errno.EMFILE: "raise the limit of open files (ulimit -n), or use fewer --jobs",
    errno.ENFILE: "raise the limit of open files (ulimit -n), or use fewer --jobs",
}
"""What the machine refuses is no defect of kb; errno -> what to do."""


@dataclass(frozen=True)
class Failure:
    """A failed command, as it is reported."""

    type: str
    message: str
    exit_code: int
    hint: str | None = None
    data: dict[str, object] = field(default_factory=dict)
    trace: str = ""
    """For a defect of kb itself: where it happened."""
    help_page: str = ""
    """For a call without arguments: the help that it is answered with."""


def describe(error: BaseException) -> Failure:
    """The failure that the exception stands for; whatever is not expected is a defect and says so."""
    if isinstance(error, KbError):
        return Failure(type(error).__name__, error.message, error.exit_code, error.hint, error.data)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return Failure("UsageError", "a command is missing", 2, help_page=error.format_message())
    if isinstance(error, click.UsageError):
        where = f"see `{error.ctx.command_path} --help`" if error.ctx else None
        return Failure("UsageError", error.format_message(), error.exit_code, where)
    if isinstance(error, click.ClickException):
        return Failure("UsageError", error.format_message(), 2)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return Failure("Interrupted", "interrupted; what was sealed before is unchanged", INTERRUPTED)
    if isinstance(error, OSError) and error.errno in REFUSALS:
        where = f"{error.filename}: " if error.filename else ""
        return Failure("SystemError", f"{where}{error.strerror}", 1, REFUSALS[error.errno])
    return Failure(
        "InternalError",
        f"{type(error).__name__}: {error}",
        1,
        "this is a defect in kb; please report it with the lines above",
        trace="".join(traceback.format_exception(error)),
    )


def report(failure: Failure, *, as_json: bool) -> None:
    """The failure on stderr, and on stdout as `kb.error/1` where JSON was asked for."""
    if as_json:
        fields = {"type": failure.type, "message": failure.message, "hint": failure.hint}
        try:
            print_document(
                "error", {"error": {**fields, "exit_code": failure.exit_code, "data": failure.data}}
            )
        except (ReaderGoneError, OSError):
            silence_stdout()
    try:
        flush()
    except (ReaderGoneError, OSError):
        silence_stdout()
    if failure.help_page:
        click.echo(failure.help_page, err=True)
        return
    if failure.trace:
        click.echo(failure.trace, err=True, nl=False)
    click.echo(f"kb: error: {one_line(failure.message)}", err=True)
    if failure.hint:
        click.echo(f"hint: {one_line(failure.hint)}", err=True)
