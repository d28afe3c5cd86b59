from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kb.config import load_settings
from kb.errors import UsageError

SECRET = "s3cr3t"
URL = f"postgresql://ada:{SECRET}@example.org/kb"


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without settings, in a home of its own."""
    for name in list(os.environ):
        if name.startswith(("KB_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def _user_file(user: Path, text: str) -> Path:
    file = user / ".config" / "kb" / "kb.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_without_any_setting_the_defaults_hold(user: Path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    settings = load_settings()
    assert settings.db_url is None
    assert settings.home == user / ".local" / "share" / "kb"
    assert settings.pg_bindir is None
    assert settings.jobs == 0
    assert settings.max_blob_bytes == 2_097_152
    assert (settings.embed_provider, settings.embed_model) == ("static", None)


def test_the_data_home_follows_the_platform(user: Path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert load_settings().home == user / "Library" / "Application Support" / "kb"
    monkeypatch.setenv("XDG_DATA_HOME", str(user / "data"))
    assert load_settings().home == user / "data" / "kb"
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    assert load_settings().home == user / ".local" / "share" / "kb"


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(user: Path, monkeypatch):
    assert load_settings().jobs == 0
    _user_file(user, "jobs = 2\nmax_blob_bytes = 10\nembed_model = 'from-file'\n")
    assert load_settings().jobs == 2
    monkeypatch.setenv("KB_JOBS", "3")
    assert load_settings().jobs == 3
    assert load_settings(jobs=None).jobs == 3
    assert load_settings(jobs=4).jobs == 4
    assert load_settings(jobs=4).max_blob_bytes == 10
    assert load_settings().embed_model == "from-file"


def test_an_empty_variable_is_no_setting(monkeypatch):
    monkeypatch.setenv("KB_DB_URL", "")
    monkeypatch.setenv("KB_JOBS", "")
    assert load_settings().db_url is None


def test_kb_config_names_another_file(user: Path, monkeypatch):
    _user_file(user, "jobs = 2\n")
    (user / "other.toml").write_text("jobs = 5\n")
    monkeypatch.setenv("KB_CONFIG", "~/other.toml")
    assert load_settings().jobs == 5
    monkeypatch.setenv("KB_CONFIG", str(user / "absent.toml"))
    with pytest.raises(UsageError, match="does not exist"):
        load_settings()


def test_the_xdg_folder_is_where_the_users_file_is(user: Path, monkeypatch):
    (user / "xdg" / "kb").mkdir(parents=True)
    (user / "xdg" / "kb" / "kb.toml").write_text("jobs = 7\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(user / "xdg"))
    assert load_settings().jobs == 7


def test_folders_are_made_absolute_and_tildes_expanded(user: Path, monkeypatch):
    monkeypatch.chdir(user)
    _user_file(user, "pg_bindir = '~/pg/bin'\n")
    assert load_settings(home="data").home == user / "data"
    assert load_settings().pg_bindir == user / "pg" / "bin"


def test_the_databases_url_is_never_rendered(monkeypatch):
    monkeypatch.setenv("KB_DB_URL", URL)
    settings = load_settings()
    assert settings.db_url is not None
    assert settings.db_url.get_secret_value() == URL
    for rendering in (repr(settings), str(settings), settings.model_dump_json()):
        assert SECRET not in rendering


def test_an_unknown_key_in_the_file_is_refused_and_the_likely_one_named(user: Path):
    file = _user_file(user, "job = 2\n")
    with pytest.raises(UsageError) as failure:
        load_settings()
    assert str(failure.value) == f"{file} has an unknown setting 'job'"
    assert failure.value.hint == "did you mean jobs?"


@pytest.mark.parametrize("text", ["jobs = \n", "jobs = 1\njobs = 2\n", "[" * 3000, "\xff".encode("latin-1")])
def test_a_file_that_is_no_toml_is_refused_in_one_line(text: str | bytes, user: Path):
    file = _user_file(user, "")
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match="is not TOML") as failure:
        load_settings()
    assert "\n" not in str(failure.value)


def test_a_file_that_is_a_folder_is_refused(user: Path):
    (user / ".config" / "kb" / "kb.toml").mkdir(parents=True)
    with pytest.raises(UsageError, match="cannot be read"):
        load_settings()


@pytest.mark.parametrize(("value", "where"), [("-1", "KB_JOBS"), ("many", "KB_JOBS"), ("1000", "KB_JOBS")])
def test_a_bad_value_names_the_variable_it_came_from(value: str, where: str, monkeypatch):
    monkeypatch.setenv("KB_JOBS", value)
    with pytest.raises(UsageError, match=f"{where} is wrong: ") as failure:
        load_settings()
    assert "\n" not in str(failure.value)


def test_a_bad_value_names_the_flag_or_the_file_it_came_from(user: Path):
    with pytest.raises(UsageError, match="--max-blob-bytes is wrong: "):
        load_settings(max_blob_bytes=0)
    file = _user_file(user, "jobs = 'x'\n")
    with pytest.raises(UsageError) as failure:
        load_settings()
    assert str(failure.value).startswith(f"jobs in {file} is wrong: ")


def test_a_url_that_is_no_postgresql_url_is_refused_without_being_repeated():
    with pytest.raises(UsageError, match="--db-url is wrong") as failure:
        load_settings(db_url=f"mysql://ada:{SECRET}@example.org/kb")
    assert SECRET not in str(failure.value)
    assert "postgresql://" in str(failure.value)


def test_importing_the_module_reads_no_setting(tmp_path: Path):
    probe = (
        "import os, pathlib\n"
        "class Watched(dict):\n"
        "    def get(self, name, default=None):\n"
        "        assert not name.startswith(('KB_', 'XDG_')), name\n"
        "        return super().get(name, default)\n"
        "import pydantic_settings\n"
        "os.environ = Watched(os.environ)\n"
        "import kb.config\n"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
