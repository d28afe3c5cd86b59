"""Command lines of click, Typer and argparse with the words that call them and their options."""

import click

from evals.folders import by_key, linked
from kb.extract.configuration.extractor import ConfigurationExtractor


def knowledge(files: dict[str, str]):
    return by_key(linked({path: text.encode() for path, text in files.items()}, [ConfigurationExtractor()]))


def test_click_commands_are_called_through_their_groups_across_files():
    found = knowledge(
        {
            "tool/__init__.py": "",
            "tool/main.py": (
                "import click\nfrom tool.users import user_group\n\n\n@click.group()\ndef cli():\n"
                '    """The tool."""\n\n\n@click.command(name="lone")\ndef lone_command():\n    pass\n\n\n'
                "cli.add_command(lone_command)\ncli.add_command(user_group)\n"
            ),
            "tool/users.py": (
                'import click\n\n\n@click.group("users")\ndef user_group():\n    pass\n\n\n'
                '@user_group.command()\n@click.argument("name")\n'
                '@click.option("-c", "--count", type=int, default=1, help="How many")\n'
                'def add_user(name, count):\n    """Adds a user."""\n'
            ),
        }
    )
    assert {key: entry.draft.body["command"] for key, entry in found.items()} == {
        "command:click:tool.main.cli": "cli",
        "command:click:tool.main.lone_command": "cli lone",
        "command:click:tool.users.user_group": "cli users",
        "command:click:tool.users.add_user": "cli users add-user",
    }
    entry = found["command:click:tool.users.add_user"]
    assert entry.draft.body["options"] == [
        {"names": ["name"], "kind": "argument"},
        {"names": ["-c", "--count"], "kind": "option", "default": "1", "type": "int", "help": "How many"},
    ]
    assert entry.draft.body["help"] == "Adds a user."
    assert ("definition", "tool/users.py", 9, 12) in entry.places
    assert ("group", "tool/main.py", 16, 16) in entry.places


def test_typer_reads_the_signature():
    found = knowledge(
        {
            "t.py": (
                "import typer\nfrom typing import Annotated\n\napp = typer.Typer()\nitems = typer.Typer()\n"
                'app.add_typer(items, name="items")\n\n\n@items.command("new")\n'
                "def create(\n    name: str,\n    size: int = 3,\n"
                '    loud: Annotated[bool, typer.Option("--loud", help="Noise")] = False,\n'
                '    path: str = typer.Argument("x"),\n):\n    pass\n'
            )
        }
    )
    body = found["command:typer:t.create"].draft.body
    assert body["command"] == "items new"
    assert body["options"] == [
        {"names": ["name"], "kind": "argument", "type": "str"},
        {"names": ["--size"], "kind": "option", "type": "int", "default": "3"},
        {"names": ["--loud"], "kind": "option", "type": "bool", "default": "False", "help": "Noise"},
        {"names": ["path"], "kind": "argument", "type": "str", "default": "x"},
    ]


def test_argparse_follows_variables_groups_and_subparsers():
    found = knowledge(
        {
            "a.py": (
                "import argparse\n\n\ndef run(args):\n    pass\n\n\ndef main():\n"
                '    parser = argparse.ArgumentParser(prog="tool", description="Does it")\n'
                '    parser.add_argument("-v", "--verbose", action="store_true")\n'
                '    sub = parser.add_subparsers(dest="cmd")\n'
                '    go = sub.add_parser("go", help="Goes")\n'
                '    group = go.add_argument_group("x")\n'
                '    group.add_argument("target", nargs="+")\n'
                "    go.set_defaults(func=run)\n"
                '    for n in "ab":\n        go.add_argument("--" + n)\n'
            )
        }
    )
    assert sorted(found) == ["command:argparse:a.main", "command:argparse:a.main:go"]
    top, go = found["command:argparse:a.main"], found["command:argparse:a.main:go"]
    assert top.draft.body["options"] == [{"names": ["-v", "--verbose"], "action": "store_true"}]
    assert go.draft.body["command"] == "tool go"
    assert go.draft.body["function"] == "a.run"
    assert go.draft.body["options"] == [
        {"names": ["target"], "nargs": "+"},
        {"names": ["?"], "resolution": "dynamic"},
    ]
    assert go.draft.confidence == 60
    assert ("handler", "a.py", 4, 4) in go.places


def test_a_django_management_command_goes_by_its_file():
    found = knowledge(
        {
            "shop/__init__.py": "",
            "shop/management/__init__.py": "",
            "shop/management/commands/__init__.py": "",
            "shop/management/commands/reindex.py": (
                "from django.core.management.base import BaseCommand\n\n\nclass Command(BaseCommand):\n"
                '    def add_arguments(self, parser):\n        parser.add_argument("--all", help="Everything")\n'
            ),
        }
    )
    body = found["command:django:shop.reindex"].draft.body
    assert body["command"] == "reindex"
    assert body["options"] == [{"names": ["--all"], "help": "Everything"}]


def test_commands_of_an_application_that_a_function_is_handed():
    text = (
        "import typer\ndef register(app: typer.Typer):\n    db = typer.Typer()\n    app.add_typer(db, name='db')\n"
        "    @app.command()\n    def up(port: int = 3):\n        pass\n"
        "    @db.command('reset')\n    def reset_all():\n        pass\n"
    )
    found = knowledge({"c.py": text})
    up = found["command:typer:c.register.<locals>.up"].draft.body
    assert (up["command"], up["below"]) == ("up", "what is handed to the function that adds it")
    assert found["command:typer:c.register.<locals>.reset_all"].draft.body["command"] == "db reset"


def test_a_group_that_a_call_makes_has_the_name_that_it_is_added_by():
    found = knowledge(
        {
            "cli/__init__.py": (
                "import click\nfrom cli import database\n@click.group()\ndef manager():\n    pass\n"
                "manager.add_command(database.manager, 'database')\n"
            ),
            "cli/database.py": (
                "from flask.cli import AppGroup\nmanager = AppGroup()\n"
                "@manager.command(name='drop')\ndef drop_tables():\n    pass\n"
            ),
        }
    )
    assert found["command:click:cli.database.drop_tables"].draft.body["command"] == "manager database drop"


def test_a_command_of_another_distribution_is_said_to_be_one():
    text = (
        "import click\nimport uvicorn\n@click.group()\ndef server():\n    pass\n"
        "server.add_command(uvicorn.main, name='start')\n"
    )
    entry = knowledge({"c.py": text})["command:click:uvicorn.main"]
    assert entry.draft.body["command"] == "server start"
    assert entry.draft.body["declared_by"] == "uvicorn"
    assert entry.places == (("definition", "c.py", 6, 6), ("group", "c.py", 3, 4))


def test_commands_of_a_blueprint_stand_below_its_name():
    text = (
        "from flask import Blueprint\nbp = Blueprint('users', __name__)\n"
        "@bp.cli.command('create')\ndef create():\n    pass\n"
    )
    assert knowledge({"c.py": text})["command:click:c.create"].draft.body["command"] == "users create"


def test_a_variable_that_an_option_reads_is_a_setting():
    text = (
        "import click\nimport typer\n@click.command()\n@click.option('--debug', envvar='APP_DEBUG', default=False)\n"
        "def run(debug):\n    pass\napp = typer.Typer()\n@app.command()\n"
        "def go(times: int = typer.Option(3, envvar=['TIMES', 'N'])):\n    pass\n"
    )
    found = knowledge({"c.py": text})
    assert found["setting:env:APP_DEBUG"].draft.body["defaults"] == ["False"]
    assert found["setting:env:APP_DEBUG"].places == (("read", "c.py", 3, 5),)
    assert found["setting:env:TIMES"].draft.body["defaults"] == ["3"]
    assert "setting:env:N" in found


def test_options_that_a_name_or_a_decorator_of_the_project_keeps_are_the_commands_own():
    """What click itself lists for the same source."""
    shared = (
        "import functools\nimport click\nverbose = click.option('--verbose', is_flag=True)\n"
        "def common(f):\n    f = click.option('--c1')(f)\n    return click.option('--c2')(f)\n"
        "def inner(f):\n    @click.option('--deep', default=2)\n    @functools.wraps(f)\n"
        "    def wrapper(**given): return f(**given)\n    return wrapper\n"
        "def timed(f): return f\n"
    )
    main = (
        "import click\nfrom shared import common, inner, timed, verbose\n"
        "@click.command()\n@verbose\n@timed\n@common\n@inner\n@click.version_option('1', '--ver')\ndef run(**given): ...\n"
    )
    found = knowledge({"shared.py": shared, "main.py": main})["command:click:main.run"]
    options = found.draft.body["options"]
    space: dict[str, object] = {}
    exec(shared, space)
    exec(main.replace("from shared import common, inner, timed, verbose", ""), space)
    command = space["run"]
    assert isinstance(command, click.Command)
    assert sorted(name for option in options for name in option["names"]) == sorted(
        name for option in command.params for name in option.opts
    )
    assert options[-1] == {"names": ["--ver"], "kind": "version_option", "version": "1"}
    assert [place[1:3] for place in found.places if place[0] == "option"] == [
        ("shared.py", 3), ("shared.py", 4), ("shared.py", 7),
    ]  # fmt: skip


def test_subcommands_that_a_loop_adds_are_each_one_or_are_said_to_be_made_at_run_time():
    text = (
        "import argparse\nparser = argparse.ArgumentParser('tool')\nsub = parser.add_subparsers()\n"
        "for name in ('up', 'down'):\n    one = sub.add_parser(name)\n    one.add_argument('--deep')\n"
        "for plugin in plugins():\n    other = sub.add_parser(plugin)\n    other.add_argument('--wide')\n"
    )
    found = knowledge({"m.py": text})
    assert {key: (entry.draft.body["command"], entry.draft.confidence) for key, entry in found.items()} == {
        "command:argparse:m": ("tool", 100),
        "command:argparse:m:up": ("tool up", 100),
        "command:argparse:m:down": ("tool down", 100),
        "command:argparse:m:<plugin>": ("tool <plugin>", 60),
    }
    assert found["command:argparse:m:<plugin>"].draft.body["resolution"] == "dynamic"


def test_the_variable_of_an_option_in_annotated_has_the_parameter_s_default():
    text = (
        "import typer\nfrom typing import Annotated\napp = typer.Typer()\n@app.command()\n"
        "def go(age: Annotated[int, typer.Option('--age', '-a', envvar='AGE')] = 3,\n"
        "       old: str = typer.Option('x', '--old', envvar='OLD'),\n"
        "       need: Annotated[str, typer.Option(envvar='NEED')] = ...): ...\n"
    )
    found = knowledge({"m.py": text})
    assert found["setting:env:AGE"].draft.body["defaults"] == ["3"]
    assert found["setting:env:OLD"].draft.body["defaults"] == ['"x"']
    assert "defaults" not in found["setting:env:NEED"].draft.body
