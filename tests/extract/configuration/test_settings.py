"""Environment variables and settings, joined by name, each with the place and the default that the code gives."""

from evals.folders import by_key, linked
from kb.extract.configuration.extractor import ConfigurationExtractor


def knowledge(files: dict[str, str]):
    return by_key(linked({path: text.encode() for path, text in files.items()}, [ConfigurationExtractor()]))


READS = """\
import os
from os import environ, getenv
from decouple import config
from environs import Env

env = Env()
NAME = "CONSTANT"
PAGE = int(os.environ.get("PAGE_SIZE", "20"))
A = os.environ["REQUIRED"]
B = getenv("B_VAR")
C = environ.get(NAME, "z")
D = config("DEC", default=False, cast=bool)
E = env.int("PORT", 8000)
F = env("PLAIN")
G = "FLAG" in os.environ
os.environ["WRITTEN"] = "1"
del os.environ["GONE"]
H = os.environ[f"PRE_{NAME}"]


def any_name(key):
    run(env=os.environ)
    return os.getenv(key)
"""


def test_every_way_to_read_a_variable_is_known():
    found = knowledge({"app.py": READS})
    assert {key: [(role, start) for role, _, start, _ in entry.places] for key, entry in found.items()} == {
        "setting:env:PAGE_SIZE": [("read", 8)],
        "setting:env:REQUIRED": [("read", 9)],
        "setting:env:B_VAR": [("read", 10)],
        "setting:env:CONSTANT": [("read", 11)],
        "setting:env:DEC": [("read", 12)],
        "setting:env:PORT": [("read", 13)],
        "setting:env:PLAIN": [("read", 14)],
        "setting:env:FLAG": [("read", 15)],
        "setting:env:WRITTEN": [("write", 16)],
        "setting:env:GONE": [("delete", 17)],
        "setting:env:PRE_*": [("read", 18)],
        "setting:dynamic:app": [("read", 23), ("read", 22)],
    }
    assert found["setting:env:PAGE_SIZE"].draft.body["defaults"] == ['"20"']
    assert found["setting:env:PORT"].draft.body["defaults"] == ["8000"]
    assert found["setting:env:REQUIRED"].draft.body["reads"][0]["required"] is True
    assert found["setting:env:PRE_*"].draft.confidence == 60
    assert found["setting:dynamic:app"].draft.body["count"] == 2


def test_one_variable_read_in_two_files_is_one_setting():
    files = {"b.py": 'import os\nX = os.environ["X"]\n', "a.py": 'import os\nY = os.getenv("X", "1")\n'}
    [entry] = knowledge(files).values()
    assert entry.home == "a.py"
    assert set(entry.places) == {("read", "a.py", 2, 2), ("read", "b.py", 2, 2)}
    assert [read["function"] for read in entry.draft.body["reads"]] == ["a", "b"]


def test_a_parameter_called_environ_is_not_the_environment():
    assert knowledge({"wsgi.py": 'def app(environ, start):\n    return environ["PATH_INFO"]\n'}) == {}


def test_a_settings_class_has_one_setting_per_field_with_its_variable():
    found = knowledge(
        {
            "base.py": (
                "from pydantic_settings import BaseSettings, SettingsConfigDict\n"
                'class Settings(BaseSettings):\n    model_config = SettingsConfigDict(env_prefix="APP_")\n'
            ),
            "conf.py": (
                "from typing import Annotated\nfrom pydantic import AliasChoices, Field\nfrom base import Settings\n"
                "class Config(Settings):\n"
                "    db_url: str\n"
                "    debug: bool = False\n"
                '    token: str = Field("x", validation_alias="API_TOKEN")\n'
                '    key: Annotated[str, Field(validation_alias=AliasChoices("KEY", "SECRET"))] = "k"\n'
            ),
        }
    )
    assert {key: entry.draft.body["environment"] for key, entry in found.items()} == {
        "setting:field:conf.Config.db_url": ["APP_DB_URL"],
        "setting:field:conf.Config.debug": ["APP_DEBUG"],
        "setting:field:conf.Config.token": ["API_TOKEN"],
        "setting:field:conf.Config.key": ["KEY", "SECRET"],
    }
    assert found["setting:field:conf.Config.db_url"].places == (
        ("field", "conf.py", 5, 5),
        ("declaration", "conf.py", 4, 4),
        ("prefix", "base.py", 3, 3),
    )
    assert found["setting:field:conf.Config.debug"].draft.body["default"] == "False"


def test_django_settings_stand_on_their_declaration_and_their_reads():
    found = knowledge(
        {
            "site/settings.py": "INSTALLED_APPS = []\nPAGE = 20\n",
            "site/__init__.py": "",
            "shop/__init__.py": "",
            "shop/views.py": (
                "from django.conf import settings as conf\n\n\ndef page():\n"
                '    return conf.PAGE, getattr(conf, "OPTIONAL", 3)\n'
            ),
        }
    )
    assert set(found["setting:django:PAGE"].places) == {
        ("read", "shop/views.py", 5, 5),
        ("declaration", "site/settings.py", 2, 2),
    }
    assert found["setting:django:PAGE"].draft.body["defaults"] == ["20"]
    assert found["setting:django:OPTIONAL"].draft.body["defaults"] == ["3"]


def test_flask_settings_are_read_from_config():
    found = knowledge(
        {
            "app.py": (
                "from flask import Flask, current_app\napp = Flask(__name__)\n"
                'app.config["LIMIT"] = 5\n\n\ndef f():\n    return current_app.config["LIMIT"]\n'
            )
        }
    )
    assert found["setting:flask:LIMIT"].places == (("write", "app.py", 3, 3), ("read", "app.py", 7, 7))
    assert found["setting:flask:LIMIT"].draft.body["defaults"] == ["5"]


def test_another_name_for_what_reads_the_environment_is_followed():
    text = (
        "import os\nfrom os import getenv as read\nenv = os.environ.get\nask = read\n"
        "A = env('A_VAR', 'a')\nB = ask('B_VAR')\nos.putenv('C_VAR', 'c')\nos.unsetenv('D_VAR')\n"
    )
    found = knowledge({"m.py": text})
    assert sorted(found) == [
        "setting:env:A_VAR",
        "setting:env:B_VAR",
        "setting:env:C_VAR",
        "setting:env:D_VAR",
    ]
    assert found["setting:env:A_VAR"].draft.body["defaults"] == ['"a"']
    assert [place[0] for key in ("C", "D") for place in found[f"setting:env:{key}_VAR"].places] == [
        "write",
        "delete",
    ]


def test_the_environment_of_bytes_and_its_other_names_are_read():
    text = (
        "import os\nfrom os import environ as env, environb as raw, getenvb, putenv as put, unsetenv\nKEY = b'E'\n"
        "a = os.environb.get(b'A', b'x')\nb = os.environb[b'B']\nc = raw[b'C']\nd = getenvb(b'D')\n"
        "e = os.environb[KEY]\nput('F', '1')\nunsetenv('G')\ndel raw[b'H']\ni = env['I']\n"
    )
    found = knowledge({"m.py": text})
    assert {
        key: next(iter(set(entry.draft.body) & {"reads", "writes", "deletes"}))
        for key, entry in found.items()
    } == {
        "setting:env:A": "reads",
        "setting:env:B": "reads",
        "setting:env:C": "reads",
        "setting:env:D": "reads",
        "setting:env:E": "reads",
        "setting:env:F": "writes",
        "setting:env:G": "deletes",
        "setting:env:H": "deletes",
        "setting:env:I": "reads",
    }
    assert found["setting:env:A"].draft.body["defaults"] == ['b"x"']
    assert found["setting:env:B"].draft.body["reads"] == [
        {"function": "m", "via": "os.environb[]", "required": True}
    ]


def test_a_name_that_a_function_binds_itself_is_not_the_environment():
    text = (
        "import os\nfrom os import environ as env\n"
        "def f(env, key: os.PathLike = os.sep):\n    return env['A'], env.get('B'), os.environ['C']\n"
        "def g():\n    env: dict = {}\n    return env['D'], (lambda env: env['E'])\n"
        "def h():\n    return run(\n        env=env['F'],\n    )\n"
        "def i(*, env=None, **rest): return env['G']\ndef j(*env): return env['H']\ndef k(env: dict = 1): return env['I']\n"
    )
    text += "def m():\n    def n():\n        env = 1\n    return env['J']\n"
    assert list(knowledge({"m.py": text})) == ["setting:env:C", "setting:env:F", "setting:env:J"]
