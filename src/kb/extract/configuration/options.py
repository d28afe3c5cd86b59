"""Options and arguments of a command as its body has them: those of argparse, click and Typer."""

from __future__ import annotations

from typing import Any

from kb.extract.configuration.facts import Option
from kb.extract.entities.annotations import Typed
from kb.extract.expressions import (
    argument,
    brief,
    dotted,
    is_true,
    keywords,
    last,
    positional,
    render,
    text_of,
)
from kb.structure.facts import Expr, Param

_OPTIONS = frozenset(
    {"option", "argument", "password_option", "confirmation_option", "version_option", "help_option"}
)
_SETTINGS = (
    "default",
    "type",
    "required",
    "help",
    "envvar",
    "multiple",
    "is_flag",
    "nargs",
    "show_default",
    "prompt",
    "hidden",
)


def argparse_option(option: Option) -> dict[str, Any]:
    """What `add_argument` was given."""
    entry: dict[str, Any] = {"names": list(option.names) or ["?"], **dict(option.settings)}
    if option.dynamic:
        entry["resolution"] = "dynamic"
    return entry


def click_option(call: Expr) -> dict[str, Any] | None:
    """What a decorator of click was given; None where it makes no option or argument."""
    verb = last(dotted(call))
    if verb not in _OPTIONS:
        return None
    names = [item.value for item in positional(call) if item.kind == "str"] if call.kind == "call" else []
    version = names.pop(0) if verb == "version_option" and names else None
    entry: dict[str, Any] = {"names": names or [f"--{verb.removesuffix('_option')}"], "kind": verb}
    if version is not None:
        entry["version"] = version
    options = keywords(call) if call.kind == "call" else {}
    entry.update(
        (word, text_of(options[word]) or brief(options[word])) for word in _SETTINGS if word in options
    )
    return entry


def typer_option(param: Param) -> dict[str, Any]:
    """Typer's rule: a parameter with a default is an option, one without is an argument."""
    read = Typed(param.annotation)
    calls = [item for item in (*read.metadata, param.default) if item is not None and item.kind == "call"]
    call: Expr | None = next((item for item in calls if last(item.value) in ("Option", "Argument")), None)
    kind = (
        last(call.value).lower() if call is not None else ("argument" if param.default is None else "option")
    )
    names = [item.value for item in positional(call) if item.kind == "str"] if call is not None else []
    default: Expr | None = None if param.default is call else param.default
    if call is not None and default is None:
        given = argument(call, "default", 0)
        default = (
            None if given is None or (kind == "option" and (text_of(given) or "").startswith("-")) else given
        )
    names = [name for name in names if kind == "option" and name.startswith("-")]
    shown = param.name.replace("_", "-")
    entry: dict[str, Any] = {"names": names or [shown if kind == "argument" else f"--{shown}"], "kind": kind}
    if read.text:
        entry["type"] = read.text
    if default is not None and render(default) != "...":
        entry["default"] = text_of(default) or brief(default)
    options = keywords(call) if call is not None else {}
    entry.update(
        (word, text_of(options[word]) or brief(options[word]))
        for word in ("help", "envvar")
        if word in options
    )
    if is_true(options.get("hidden")):
        entry["hidden"] = "True"
    return entry
