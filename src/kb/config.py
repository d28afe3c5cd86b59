"""Settings: of the person who runs kb, and the few that an indexed repository may ask for.

Precedence: flag, then environment (`KB_*`), then the user's `kb.toml`, then the default. Nothing is
read at import; `load_settings` reads, once per command.
"""

from __future__ import annotations

import difflib
import os
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from kb.errors import UsageError

PREFIX = "KB_"
LONGEST_REPOSITORY_CONFIG = 64 * 1024


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _postgres_url(url: SecretStr) -> SecretStr:
    if url.get_secret_value().split("://", 1)[0] not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise ValueError("it has the form postgresql://user@host/database")
    return url


Folder = Annotated[Path, AfterValidator(_absolute)]


def default_home() -> Path:
    """Where kb keeps its data: XDG_DATA_HOME/kb, on macOS the user's Application Support folder."""
    named = os.environ.get("XDG_DATA_HOME", "")
    if Path(named).is_absolute():
        return Path(named) / "kb"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "kb"
    return Path.home() / ".local" / "share" / "kb"


class Settings(BaseSettings):
    """What the person who runs kb decided; the database's URL is never printed."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True)

    db_url: Annotated[SecretStr, AfterValidator(_postgres_url)] | None = None
    """PostgreSQL to use; None: kb runs its own."""
    home: Folder = Field(default_factory=default_home)
    """Data home: the embedded database and the mirrors of remote repositories."""
    pg_bindir: Folder | None = None
    """Folder with the programs of PostgreSQL 18; None: those of the installed wheel."""
    jobs: int = Field(default=0, ge=0, le=256)
    """Worker processes; 0: one per core."""
    max_blob_bytes: int = Field(default=2 * 1024 * 1024, ge=1)
    """Larger files become a `too_large` gap."""
    auth_token: SecretStr | None = None
    """What clients of `kb serve --http` have to send; needed wherever other machines can connect."""
    embed_provider: str = "static"
    """Which adapter turns texts into vectors."""
    embed_model: str | None = None
    """The provider's model; None: its default."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, environment, then the user's file; no `.env` file is ever read."""
        del dotenv_settings, file_secret_settings
        return init_settings, env_settings, InitSettingsSource(settings_cls, read_user_file(user_file()))


def load_settings(**flags: Any) -> Settings:
    """The settings in force, with the flags that were given (None: not given) before everything else.

    Raises:
        UsageError: a value is wrong, `kb.toml` cannot be read or has a key that kb does not know.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise _wrong_setting(str(first["loc"][0]), first["type"], str(first["msg"]), given) from None


def _wrong_setting(name: str, kind: str, message: str, flags: Mapping[str, Any]) -> UsageError:
    """One line that says which setting is wrong, and where it was set; never its value."""
    if kind == "extra_forbidden":
        close = difflib.get_close_matches(name, Settings.model_fields, n=1)
        known = ", ".join(sorted(Settings.model_fields))
        hint = f"did you mean {close[0]}?" if close else f"known settings: {known}"
        return UsageError(f"{user_file()} has an unknown setting '{name}'", hint=hint)
    variable = PREFIX + name.upper()
    if name in flags:
        where = f"--{name.replace('_', '-')}"
    elif os.environ.get(variable):
        where = variable
    else:
        where = f"{name} in {user_file()}"
    return UsageError(f"{where} is wrong: {message.removeprefix('Value error, ')}", setting=name)


def user_file() -> Path:
    """The user's `kb.toml`: KB_CONFIG, else `kb/kb.toml` in the XDG configuration folder."""
    named = os.environ.get("KB_CONFIG", "")
    if named:
        return Path(named).expanduser()
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"
    return base / "kb" / "kb.toml"


def read_user_file(path: Path) -> dict[str, Any]:
    """The settings in a `kb.toml`; none where the default file does not exist.

    Raises:
        UsageError: it cannot be read, is no TOML, or KB_CONFIG names a file that does not exist.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if os.environ.get("KB_CONFIG"):
            raise UsageError(f"KB_CONFIG names {path}, which does not exist") from None
        return {}
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class RepositoryConfig:
    """What an indexed repository's own `kb.toml` may set; gitignore patterns, and folders for roots."""

    roots: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()

    @classmethod
    def parse(cls, data: bytes) -> tuple[RepositoryConfig, tuple[str, ...]]:
        """The configuration in a blob, and a notice for everything in it that was not heeded.

        Never raises: the blob comes from the repository, which may hold anything.
        """
        if len(data) > LONGEST_REPOSITORY_CONFIG:
            return cls(), ("kb.toml is larger than 64 KiB: ignored",)
        try:
            table = tomllib.loads(data.decode("utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
            return cls(), (f"kb.toml is not TOML: ignored ({error})",)
        settings: dict[str, tuple[str, ...]] = {}
        notices: list[str] = []
        for key, value in table.items():
            if key not in ("roots", "includes", "excludes"):
                notices.append(f"kb.toml: a repository cannot set {key!r}: ignored")
            elif not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                notices.append(f"kb.toml: {key} is not a list of strings: ignored")
            elif key == "roots":
                settings[key], outside = repository_roots(value)
                notices += [f"kb.toml: {one}: ignored" for one in outside]
            else:
                settings[key] = tuple(value)
        return cls(**settings), tuple(notices)


def repository_roots(values: Iterable[str]) -> tuple[tuple[str, ...], list[str]]:
    """Folders as paths from the top of the repository ("" is the top), and a complaint for each that is outside."""
    roots, complaints = [], []
    for value in values:
        path = PurePosixPath(value)
        if path.is_absolute() or ".." in path.parts or "\0" in value:
            complaints.append(f"root {value!r} is not inside the repository")
        else:
            roots.append("" if str(path) == "." else str(path))
    return tuple(dict.fromkeys(roots)), complaints
