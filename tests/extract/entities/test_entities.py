"""Entities in odd and hostile surroundings; what is usual is in the entities gate."""

from evals.folders import by_key, linked, linked_with_lookups
from kb.extract.entities.extractor import EntitiesExtractor


def knowledge(files: dict[str, str]):
    return by_key(linked({path: text.encode() for path, text in files.items()}, [EntitiesExtractor()]))


def test_classes_that_derive_from_each_other_come_to_an_end():
    files = {
        "a.py": "from b import B\nclass A(B):\n    x: int\n",
        "b.py": "from a import A\nclass B(A):\n    y: int\n",
        "c.py": "class C(C):\n    pass\nx = D()\nclass D(x.Model):\n    z: int\n",
    }
    assert knowledge(files) == {}


def test_a_model_that_refers_to_itself_through_an_alias_is_found():
    files = {
        "m.py": (
            "from pydantic import BaseModel as Model\n"
            "class Node(Model):\n    children: 'list[Node]'\n    left: 'Node | None' = None\n"
        )
    }
    body = knowledge(files)["entity:m.Node"].draft.body
    assert [(r["name"], r["target"], r["cardinality"]) for r in body["relations"]] == [
        ("children", "m.Node", "many"),
        ("left", "m.Node", "one"),
    ]


def test_a_class_becomes_an_entity_through_bases_in_other_files():
    files = {
        "pkg/__init__.py": "from pkg.base import Root as Shared\n",
        "pkg/base.py": "import pydantic\nclass Root(pydantic.BaseModel):\n    id: int\n",
        "pkg/leaf.py": "from pkg import Shared\nclass Leaf(Shared):\n    name: str\n",
    }
    found = knowledge(files)
    assert [entry["name"] for entry in found["entity:pkg.leaf.Leaf"].draft.body["inherited"]] == ["id"]
    assert ("inherited", "pkg/base.py", 3, 3) in found["entity:pkg.leaf.Leaf"].places


def test_the_look_ups_name_the_files_that_an_entity_depends_on():
    files = {
        "base.py": b"from pydantic import BaseModel\nclass Base(BaseModel):\n    id: int\n",
        "leaf.py": b"from base import Base\nclass Leaf(Base):\n    name: str\n",
    }
    for entry, lookups in linked_with_lookups(files, [EntitiesExtractor()]):
        if entry.draft.logical_key == "entity:leaf.Leaf":
            keys = {(row.kind, row.key.split("\x1f")[0]) for row in lookups}
            assert ("definition", "base.py") in keys


def test_an_edit_inside_a_method_does_not_renew_the_entity():
    before = "from pydantic import BaseModel\nclass A(BaseModel):\n    x: int\n    def f(self):\n        return 1\n"
    after = "# a comment\n" + before.replace("return 1", "return 2")
    first, second = (knowledge({"a.py": text})["entity:a.A"].draft for text in (before, after))
    assert [(g.span_id, g.role) for g in first.groundings] == [(g.span_id, g.role) for g in second.groundings]
    assert first.body == second.body


def test_two_definitions_of_one_class_are_two_entities():
    text = (
        "import sys\nfrom enum import Enum\nif sys.platform == 'win32':\n    class E(Enum):\n        A = 1\n"
        "else:\n    class E(Enum):\n        B = 2\n"
    )
    assert sorted(knowledge({"e.py": text})) == ["entity:e.E", "entity:e.E~2"]


def test_a_foreign_key_to_a_table_that_is_not_there_says_so():
    text = (
        "from sqlalchemy import Column, ForeignKey, Integer\nfrom sqlalchemy.orm import declarative_base\n"
        "Base = declarative_base()\nclass A(Base):\n    __tablename__ = 'a'\n"
        "    id = Column(Integer, primary_key=True)\n    b_id = Column(ForeignKey('b.id'))\n"
    )
    entry = knowledge({"a.py": text})["entity:a.A"].draft
    assert entry.body["relations"] == [
        {
            "name": "b_id",
            "target": "b.id",
            "cardinality": "one",
            "via": "ForeignKey",
            "resolution": "unresolved",
        }
    ]
    assert entry.confidence == 60
    assert entry.links == ()


def test_a_class_that_only_looks_like_an_entity_is_none():
    text = (
        "from django import forms\nfrom rich.table import Column\n"
        "class F(forms.Form):\n    name = forms.CharField()\nclass T:\n    c = Column('x')\n    limit: int = 3\n"
    )
    assert knowledge({"f.py": text}) == {}
