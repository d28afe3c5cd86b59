"""Settings whose reader, application or declaration stands in another file, and what a run alone can tell."""

from evals.folders import by_key, linked
from kb.extract.configuration.extractor import ConfigurationExtractor


def knowledge(files: dict[str, str]):
    return by_key(linked({path: text.encode() for path, text in files.items()}, [ConfigurationExtractor()]))


def test_a_reader_that_another_module_makes_reads_the_environment():
    found = knowledge(
        {
            "shop/__init__.py": "",
            "shop/conf.py": 'from starlette.config import Config\nconfig = Config(".env")\n',
            "shop/flows.py": 'from shop.conf import config\ndef f():\n    return config("SHOP_SLUG", default="s")\n',
        }
    )
    entry = found["setting:env:SHOP_SLUG"]
    assert entry.places == (("read", "shop/flows.py", 3, 3),)
    assert entry.draft.body["defaults"] == ['"s"']


def test_a_function_that_is_called_config_is_no_reader():
    found = knowledge(
        {
            "shop/__init__.py": "",
            "shop/conf.py": "def config(name):\n    return name\n",
            "shop/flows.py": 'from shop.conf import config\nconfig("SHOP_SLUG")\n',
        }
    )
    assert found == {}


def test_os_that_a_star_import_hands_on_is_os():
    found = knowledge(
        {"s/common.py": "import os\n", "s/prod.py": 'from .common import *\nA = os.environ["KEY"]\n'}
    )
    assert list(found) == ["setting:env:KEY"]


def test_the_whole_environment_is_a_read_without_a_name():
    text = "import os\ndef f():\n    return [k for k in os.environ], os.environ.copy(), dict(os.environ)\n"
    body = knowledge({"a.py": text})["setting:dynamic:a"].draft.body
    assert body["count"] == 3
    assert {entry["via"] for entry in body["reads"]} == {"the whole environment"}


def test_an_update_of_the_environment_writes_every_literal_name():
    found = knowledge({"a.py": 'import os\nos.environ.update({"ONE": "1"}, TWO="2")\n'})
    assert sorted(found) == ["setting:env:ONE", "setting:env:TWO"]
    assert found["setting:env:TWO"].draft.body["writes"][0]["value"] == '"2"'


def test_another_name_for_the_environment_is_followed():
    assert list(knowledge({"a.py": 'import os\nenv = os.environ\nenv.get("KEY")\n'})) == ["setting:env:KEY"]


def test_flask_settings_stand_where_the_object_of_from_object_declares_them():
    found = knowledge(
        {
            "app/__init__.py": (
                "from flask import Flask\ndef create_app(config='app.config.Local'):\n"
                "    app = Flask(__name__)\n    app.config.from_object(config)\n"
                '    return app.config["LIMIT"], app.config.get("REGION")\n'
            ),
            "app/config.py": 'class Base:\n    LIMIT = 5\nclass Local(Base):\n    REGION = "eu"\n',
            "tests/test_app.py": 'def test(app):\n    app.config["LIMIT"] = 1\n',
        }
    )
    limit = found["setting:flask:LIMIT"]
    assert limit.draft.body["defaults"] == ["5"]
    assert ("declaration", "app/config.py", 2, 2) in limit.places
    assert limit.draft.body["writes"] == [
        {"function": "tests.test_app.test", "via": "config[]", "value": "1"}
    ]
    assert found["setting:flask:REGION"].draft.body["declared"] == [
        {"module": "app.config.Local", "value": '"eu"'}
    ]


def test_settings_with_names_made_at_run_time_are_counted_by_framework():
    found = knowledge(
        {
            "a.py": "from django.conf import settings\ndef f(name):\n    return getattr(settings, name)\n",
            "b.py": "from flask import current_app\ndef f(name):\n    return current_app.config[name]\n",
        }
    )
    assert sorted(found) == ["setting:dynamic:django:a", "setting:dynamic:flask:b"]
    assert found["setting:dynamic:django:a"].draft.confidence == 60
