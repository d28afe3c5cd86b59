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


def test_what_a_compiled_file_has_for_another_distribution_is_locked():
    found = knowledge(
        {
            "requirements.in": "httpx\n",
            "requirements.txt": (
                "certifi==1.0\n    # via\n    #   httpcore\n    #   httpx\nhttpx==2.0  # via -r requirements.in\n"
            ),
            "app.py": "import httpx\n",
        }
    )
    assert found["dependency:certifi"].draft.body == {
        "distribution": "certifi",
        "status": "locked",
        "locked": ["1.0"],
    }
    assert found["dependency:httpx"].draft.body["status"] == "declared"


def test_what_settings_name_in_texts_is_used():
    found = knowledge(
        {
            "requirements.txt": "whitenoise\ndjango-csp\ndjango-storages\ndjango-redis\n",
            "site/base.py": (
                'MIDDLEWARE = ["whitenoise.middleware.WhiteNoiseMiddleware"]\nINSTALLED_APPS = []\n'
                'INSTALLED_APPS.append("csp")\n'
            ),
            "site/files.py": 'STORAGE = "storages.backends.s3.S3Storage"\n',
            "site/prod.py": 'CACHES = {"default": {"BACKEND": "django_redis.cache.RedisCache"}}\n',
        }
    )
    assert {key: entry.draft.body["status"] for key, entry in found.items()} == {
        "dependency:whitenoise": "declared",
        "dependency:django-csp": "declared",
        "dependency:django-storages": "declared",
        "dependency:django-redis": "declared",
    }
    assert ("named", "site/base.py", 3, 3) in found["dependency:django-csp"].places


def test_a_text_of_settings_alone_makes_nothing_undeclared():
    found = knowledge({"requirements.txt": "", "s.py": 'INSTALLED_APPS = ["blog", "outside.apps.Config"]\n'})
    assert found == {}


def test_a_name_that_is_part_of_the_other_is_said_on_both_sides():
    found = knowledge({"requirements.txt": "sprocket-client\n", "a.py": "import sprocket\n"})
    declared, used = found["dependency:sprocket-client"].draft, found["dependency:sprocket"].draft
    assert declared.body["status"] == "declared_unused"
    assert "sprocket" in declared.body["note"]
    assert used.body["status"] == "used_undeclared"
    assert "sprocket-client" in used.body["note"]
    assert (declared.confidence, used.confidence) == (50, 50)


def test_a_part_of_a_name_is_said_on_both_sides_whatever_its_capitals():
    found = knowledge({"requirements.txt": "Foo-bar\n", "a.py": "import Bar\n"})
    declared, used = found["dependency:foo-bar"].draft.body, found["dependency:bar"].draft.body
    rest = "the name of one is part of the other's"
    assert (declared["status"], declared["note"]) == (
        "declared_unused",
        f"may be what is imported as Bar: {rest}",
    )
    assert (used["imported_as"], used["note"]) == (["Bar"], f"may be what foo-bar provides: {rest}")


@pytest.mark.parametrize(
    ("declared", "statement", "names"),
    [
        ("ipython", "from IPython.display import HTML", ["IPython"]),
        ("restrictedpython", "import RestrictedPython", ["RestrictedPython"]),
        ("python-levenshtein", "import Levenshtein", ["Levenshtein"]),
        ("pysaml2", "import saml2", ["saml2"]),
        ("asgi-ratelimit", "from ratelimit import RateLimitMiddleware", ["ratelimit"]),
        ("google-cloud-storage", "from google.cloud import storage", ["google.cloud.storage"]),
        ("pywin32", "import win32api, win32con", ["win32api", "win32con"]),
    ],
)
def test_a_distribution_is_imported_as_what_the_statements_say(declared, statement, names):
    entry = knowledge({"requirements.txt": declared, "a.py": statement})[f"dependency:{declared}"]
    assert entry.draft.body["imported_as"] == names
    assert [link.target_key for link in entry.draft.links] == [f"module:{name}" for name in names]


def test_a_distribution_that_is_undeclared_has_its_own_capitals_too():
    found = knowledge({"requirements.txt": "", "a.py": "import IPython\nimport Strange\n"})
    assert {key: entry.draft.body["imported_as"] for key, entry in found.items()} == {
        "dependency:ipython": ["IPython"],
        "dependency:strange": ["Strange"],
    }


def test_an_undeclared_distribution_that_has_several_modules_is_one():
    files = {
        "requirements.txt": "",
        "a.py": "import bson\nimport pymongo.errors\nimport win32con\n",
        "b.py": "import win32api\n",
        "c.py": "import Bar\nimport bar\n",
        "d.py": "import bar\n",
    }
    found = knowledge(files)
    assert {key: (entry.home, entry.draft.body["imported_as"]) for key, entry in found.items()} == {
        "dependency:pymongo": ("a.py", ["bson", "pymongo"]),
        "dependency:pywin32": ("a.py", ["win32api", "win32con"]),
        "dependency:bar": ("c.py", ["Bar", "bar"]),
    }
    assert places(found["dependency:pymongo"]) == {("import", "a.py", 1, 1), ("import", "a.py", 2, 2)}
    assert places(found["dependency:pywin32"]) == {("import", "a.py", 3, 3), ("import", "b.py", 1, 1)}


def test_a_declared_distribution_of_a_namespace_hides_no_other_one():
    files = {
        "requirements.txt": "zope.interface\n",
        "a.py": "import zope.interface\n",
        "b.py": "import zope.interface\nimport zope.event\n",
    }
    found = knowledge(files)
    assert sorted(found) == ["dependency:zope", "dependency:zope-interface"]
    assert found["dependency:zope"].home == "b.py"
    assert places(found["dependency:zope"]) == {("import", "b.py", 2, 2)}


def test_capitals_of_a_module_are_no_difference():
    found = knowledge({"requirements.txt": "restrictedpython\n", "a.py": "import RestrictedPython\n"})
    assert found["dependency:restrictedpython"].draft.body["status"] == "declared"


def test_what_builds_the_project_needs_no_import():
    text = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    body = knowledge({"pyproject.toml": text})["dependency:hatchling"].draft.body
    assert (body["status"], body["note"]) == ("declared", "builds the project: nothing has to import it")


def test_a_requirements_file_gives_its_group_by_its_name():
    found = knowledge({"requirements/test.txt": "responses\n"})
    assert found["dependency:responses"].draft.body["declared"][0]["group"] == "test"


def test_the_setuptools_of_a_setup_py_is_not_undeclared():
    text = 'from setuptools import setup\nsetup(name="shop", install_requires=["attrs"])\n'
    assert list(knowledge({"setup.py": text})) == ["dependency:attrs"]


def test_a_package_of_the_same_repository_is_not_said_to_be_unused():
    found = knowledge(
        {
            "core/pyproject.toml": '[project]\nname = "acme-core"\ndependencies = ["httpx"]\n',
            "core/src/acme/core/__init__.py": "import httpx\n",
            "web/pyproject.toml": '[tool.poetry]\nname = "acme-web"\n[tool.poetry.dependencies]\n'
            'acme-core = { path = "../core", develop = true }\n',
            "web/src/acme/web/__init__.py": "import acme.core\n",
            "uv.lock": '[[package]]\nname = "acme-web"\nversion = "1"\nsource = { editable = "web" }\n',
        }
    )
    assert {key: entry.draft.body["status"] for key, entry in found.items()} == {
        "dependency:acme-core": "own",
        "dependency:acme-web": "own",
        "dependency:httpx": "declared",
    }
    assert places(found["dependency:acme-core"]) == {("declaration", "web/pyproject.toml", 4, 4)}
