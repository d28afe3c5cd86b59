"""What manifests declare, on which lines, and where that differs from what is imported."""

import pytest

from evals.folders import by_key, linked
from kb.extract.dependencies.extractor import DependenciesExtractor
from kb.extract.dependencies.facts import Requirement, parse_requirement


def knowledge(files: dict[str, str]):
    return by_key(linked({path: text.encode() for path, text in files.items()}, [DependenciesExtractor()]))


def places(entry) -> set[tuple[str, str, int, int]]:
    return set(entry.places)


PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]  # comment

[project]
name = "Demo.App"
optional-dependencies.yaml = [
    "PyYAML>=6 ; python_version < '3.14'",
    'demo-app[cli]',
]
optional-dependencies.cli = ["click[b,a] (>=8)", "rich @ https://user:pw@host.org/rich-1.whl"]

[dependency-groups]
dev = ["pytest>=8", {include-group = "lint"}]

[tool.poetry.dependencies]
python = "^3.11"
httpx = { version = "^0.27", extras = ["http2"], optional = true }
django = "*"
"""


def test_pyproject_tables_are_read_on_their_own_lines():
    found = knowledge({"pyproject.toml": PYPROJECT})
    assert sorted(found) == [
        f"dependency:{name}" for name in ("click", "django", "hatchling", "httpx", "pytest", "pyyaml", "rich")
    ]
    assert places(found["dependency:pyyaml"]) == {("declaration", "pyproject.toml", 7, 7)}
    assert places(found["dependency:hatchling"]) == {("declaration", "pyproject.toml", 2, 2)}
    assert places(found["dependency:httpx"]) == {("declaration", "pyproject.toml", 17, 17)}
    assert found["dependency:pyyaml"].draft.body["declared"] == [
        {"in": "pyproject", "group": "yaml", "specifier": ">=6", "marker": "python_version < '3.14'"}
    ]
    assert found["dependency:click"].draft.body["declared"] == [
        {"in": "pyproject", "group": "cli", "specifier": ">=8", "extras": ["a", "b"]}
    ]
    assert found["dependency:django"].draft.body["declared"] == [
        {"in": "pyproject", "group": "", "specifier": ""}
    ]


def test_a_password_in_a_url_is_not_repeated():
    found = knowledge({"pyproject.toml": PYPROJECT})
    entry = found["dependency:rich"].draft
    assert entry.body["declared"][0]["source"] == "https://host.org/rich-1.whl"
    assert "pw" not in entry.text


def test_a_requirements_file_has_continuations_includes_and_what_cannot_be_read():
    found = knowledge(
        {
            "requirements.txt": (
                "# main\n-r base/extra.txt\n-c constraints.txt\nrequests==2.31.0 \\\n    --hash=sha256:abc\n"
                "Flask_Login>=0.6  # why\ngit+https://github.com/x/y.git@main#egg=y-thing\n./vendored\n-e .\n"
            ),
            "constraints.txt": "urllib3<2\nrequests<3\n",
        }
    )
    assert sorted(found) == [
        "dependency:flask-login",
        "dependency:requests",
        "dependency:unread:requirements.txt",
        "dependency:urllib3",
        "dependency:y-thing",
    ]
    assert places(found["dependency:requests"]) == {
        ("declaration", "requirements.txt", 4, 5),
        ("constraint", "constraints.txt", 2, 2),
    }
    assert found["dependency:requests"].home == "requirements.txt"
    assert found["dependency:urllib3"].draft.body["status"] == "constrained"
    unread = found["dependency:unread:requirements.txt"]
    assert unread.draft.body["reasons"] == [
        "a path or URL that does not say its distribution: ./vendored",
        "names base/extra.txt, which is not in the repository",
    ]
    assert unread.draft.confidence == 60


def test_setup_files_are_read_without_running_them():
    found = knowledge(
        {
            "setup.cfg": (
                "[metadata]\nname = demo\n[options]\ninstall_requires =\n    attrs>=23\n    # no\n"
                '    numpy ; extra == "x"\n[options.extras_require]\npg = psycopg2-binary\n'
            ),
            "setup.py": (
                "from setuptools import setup\n"
                'BASE = ["sqlalchemy>=2"]\n'
                'setup(name="demo", install_requires=BASE + ["celery", read("x")])\n'
            ),
        }
    )
    assert places(found["dependency:attrs"]) == {("declaration", "setup.cfg", 5, 5)}
    assert places(found["dependency:psycopg2-binary"]) == {("declaration", "setup.cfg", 9, 9)}
    assert places(found["dependency:sqlalchemy"]) == {("declaration", "setup.py", 2, 2)}
    assert places(found["dependency:celery"]) == {("declaration", "setup.py", 3, 3)}
    assert found["dependency:unread:setup.py"].draft.body["reasons"] == [
        'not a literal requirement: read("x")'
    ]


def test_dependencies_computed_at_build_time_are_said_to_be_so():
    found = knowledge({"pyproject.toml": '[project]\nname = "x"\ndynamic = ["version", "dependencies"]\n'})
    entry = found["dependency:unread:pyproject.toml"]
    assert entry.draft.body["reasons"] == ["dependencies are computed when the project is built"]
    assert places(entry) == {("declaration", "pyproject.toml", 3, 3)}


def test_declared_locked_and_imported_are_joined_and_differences_said():
    files = {
        "pyproject.toml": '[project]\nname = "demo"\ndependencies = ["PyYAML", "requests", "unused"]\n',
        "uv.lock": (
            'version = 1\n\n[[package]]\nname = "demo"\nversion = "0"\nsource = { editable = "." }\n\n'
            '[[package]]\nname = "requests"\nversion = "2.31.0"\n\n[[package]]\nname = "idna"\nversion = "3.4"\n\n'
            '[[package]]\nname = "certifi"\nversion = "2024.1"\n'
        ),
        "src/demo/__init__.py": "",
        "src/demo/a.py": (
            "import os, yaml\nimport requests.sessions\nfrom google.cloud import storage\n"
            "import idna\nimport mystery\nfrom demo import b\n"
        ),
        "src/demo/b.py": "import mystery\n",
    }
    found = knowledge(files)
    assert {key: entry.draft.body["status"] for key, entry in found.items()} == {
        "dependency:pyyaml": "declared",
        "dependency:requests": "declared",
        "dependency:unused": "declared_unused",
        "dependency:idna": "used_undeclared",
        "dependency:certifi": "locked",
        "dependency:google-cloud-storage": "used_undeclared",
        "dependency:mystery": "used_undeclared",
    }
    assert places(found["dependency:requests"]) == {
        ("declaration", "pyproject.toml", 3, 3),
        ("lock", "uv.lock", 8, 10),
        ("import", "src/demo/a.py", 2, 2),
    }
    assert places(found["dependency:mystery"]) == {
        ("import", "src/demo/a.py", 5, 5),
        ("import", "src/demo/b.py", 1, 1),
    }
    assert found["dependency:idna"].draft.body["locked"] == ["3.4"]
    assert found["dependency:mystery"].draft.confidence == 70


def test_without_a_manifest_nothing_is_called_undeclared():
    assert knowledge({"a.py": "import requests\n"}) == {}


def test_pipenv_files_are_read():
    found = knowledge(
        {
            "Pipfile": '[packages]\nredis = "*"\n\n[dev-packages]\nmypy = {version = ">=1"}\n',
            "Pipfile.lock": (
                '{\n    "_meta": {\n        "hash": {\n            "sha256": "x"\n        }\n    },\n'
                '    "default": {\n        "redis": {\n            "hashes": [],\n'
                '            "version": "==5.0.1"\n        }\n    },\n    "develop": {}\n}\n'
            ),
        }
    )
    assert places(found["dependency:redis"]) == {
        ("declaration", "Pipfile", 2, 2),
        ("lock", "Pipfile.lock", 8, 10),
    }
    assert found["dependency:redis"].draft.body["locked"] == ["5.0.1"]
    assert found["dependency:mypy"].draft.body["declared"] == [
        {"in": "pipfile", "group": "dev", "specifier": ">=1"}
    ]


def test_a_broken_manifest_is_an_artifact_that_says_so():
    found = knowledge({"pyproject.toml": "[project\nname = 1\n"})
    [entry] = found.values()
    assert entry.draft.body["status"] == "unread"
    assert entry.draft.body["reasons"][0].startswith("not valid TOML")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a", Requirement("a")),
        ("A_b.C >= 1, <2", Requirement("a-b-c", ">=1,<2")),
        ("x[b, a]==1; os_name == 'nt'", Requirement("x", "==1", ("a", "b"), "os_name == 'nt'")),
        ("x@git+https://h/r", Requirement("x", source="git+https://h/r")),
        ("git+https://h/r#egg=Y_z", Requirement("y-z", source="git+https://h/r#egg=Y_z")),
        (
            "https://h/My_Pkg-1.0-py3-none-any.whl",
            Requirement("my-pkg", source="https://h/My_Pkg-1.0-py3-none-any.whl"),
        ),
        ("https://h/pkg.tar.gz", None),
        ("not a requirement", None),
        ("", None),
    ],
)
def test_requirement_strings_are_read(text, wanted):
    assert parse_requirement(text) == wanted
