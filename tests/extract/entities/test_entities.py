"""Entities in odd and hostile surroundings; what is usual is in the entities gate."""

import sys
from types import ModuleType

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


TYPES = """
from typing import Annotated, Optional
from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import DeclarativeBase, mapped_column

class Base(DeclarativeBase): ...

key = Annotated[int, mapped_column(primary_key=True)]
text = Annotated[str, mapped_column(String(50), index=True)]
maybe = Annotated[Optional[str], mapped_column(String(20))]
number = Optional[int]
owner = Annotated[int, mapped_column(ForeignKey("user.id", ondelete="CASCADE"), unique=True)]
"""
TABLES = """
from typing import Annotated, Optional
from sqlalchemy import Column, ForeignKey, Integer, String, Table
from sqlalchemy.orm import Mapped, mapped_column, registry
import aliased_types as types
from aliased_types import Base, key, maybe, number, owner, text

class User(Base):
    __tablename__ = "user"
    id: Mapped[key]
    name: Mapped[text]
    nick: Mapped[Optional[text]]
    short: Mapped[types.text | None]
    note: Mapped[maybe]
    given: Mapped[maybe] = mapped_column(nullable=False)
    size: Mapped[number]
    code: Mapped[text] = mapped_column(String(9), unique=True)
    boss: Mapped[Optional[owner]] = mapped_column(index=True)
    inline: Mapped[Annotated[int, mapped_column(unique=True)]]

reg = registry()

@reg.mapped
class Old:
    __table__ = Table("old", reg.metadata, Column("id", Integer, primary_key=True), Column("user", ForeignKey("user.id")))
"""


def test_columns_that_an_alias_of_a_type_carries_are_those_that_sqlalchemy_makes(monkeypatch):
    for name, source in (("aliased_types", TYPES), ("aliased_tables", TABLES)):
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(source, name, "exec"), module.__dict__)
    found = knowledge({"aliased_types.py": TYPES, "aliased_tables.py": TABLES})
    for owner in ("User", "Old"):
        table = getattr(sys.modules["aliased_tables"], owner).__table__
        fields = found[f"entity:aliased_tables.{owner}"].draft.body["fields"]
        said = {
            f["name"]: (
                f.get("primary_key", False),
                f["nullable"],
                f.get("foreign_key"),
                f.get("constraints", {}).get("unique") == "True",
                f.get("constraints", {}).get("index") == "True",
            )
            for f in fields
        }
        assert said == {
            column.name: (
                column.primary_key,
                column.nullable,
                next((key.target_fullname for key in column.foreign_keys), None),
                bool(column.unique),
                bool(column.index),
            )
            for column in table.columns
        }
    user = found["entity:aliased_tables.User"]
    assert {f["name"]: f.get("constraints", {}).get("sql_type") for f in user.draft.body["fields"]} | {
        "inline": None
    } == {
        "id": None, "name": "String(50)", "nick": "String(50)", "short": "String(50)", "note": "String(20)",
        "given": "String(20)", "size": None, "code": "String(9)", "boss": None, "inline": None,
    }  # fmt: skip
    assert user.draft.body["primary_key"] == ["id"]
    assert ("alias", "aliased_types.py", 8, 8) in user.places
    assert [r["target"] for r in user.draft.body["relations"]] == ["aliased_tables.User"]


def test_what_an_alias_of_a_type_says_counts_wherever_it_is_written():
    files = {
        "kinds.py": (
            "from typing import Annotated, Optional, Union\nfrom pydantic import BaseModel, Field\n"
            "class Cat(BaseModel): ...\nclass Dog(BaseModel): ...\n"
            "Pet = Union[Cat, Dog]\nMaybe = Optional[Pet]\nCount = Annotated[int, Field(gt=0)]\n"
        ),
        "home.py": (
            "from dataclasses import dataclass\nfrom pydantic import AliasChoices, BaseModel, Field\n"
            "import kinds\nfrom kinds import Count, Maybe\n"
            "class Home(BaseModel):\n    pet: Maybe = None\n    pets: list[kinds.Pet]\n    rooms: Count\n"
            "    town: str = Field(validation_alias=AliasChoices('town', 'city'))\n"
            "@dataclass\nclass Flat:\n    pet: Maybe\n"
        ),
    }
    home = knowledge(files)["entity:home.Home"]
    body = home.draft.body
    assert {f["name"]: f["nullable"] for f in body["fields"]} == {
        "pet": True, "pets": False, "rooms": False, "town": False,
    }  # fmt: skip
    assert {f["name"]: f["constraints"] for f in body["fields"] if "constraints" in f} == {
        "rooms": {"gt": "0"},
        "town": {"validation_alias": 'AliasChoices("town", "city")'},
    }
    assert sorted((r["name"], r["target"], r["cardinality"]) for r in body["relations"]) == [
        ("pet", "kinds.Cat", "one"),
        ("pet", "kinds.Dog", "one"),
        ("pets", "kinds.Cat", "many"),
        ("pets", "kinds.Dog", "many"),
    ]
    assert ("alias", "kinds.py", 7, 7) in home.places
    flat = knowledge(files)["entity:home.Flat"].draft.body
    assert [(f["name"], f["nullable"]) for f in flat["fields"]] == [("pet", True)]


def test_a_model_made_by_create_model_has_the_fields_of_its_base():
    text = (
        "from pydantic import BaseModel, create_model\nclass A(BaseModel):\n    x: int\n    y: int = 1\n"
        "Made = create_model('Made', __base__=A, y=(str, ...))\n"
    )
    made = knowledge({"m.py": text})["entity:m.Made"]
    assert made.draft.body["bases"] == ["m.A"]
    assert [(f["name"], f["from"]) for f in made.draft.body["inherited"]] == [("x", "m.A")]
    assert ("inherited", "m.py", 3, 3) in made.places


def test_a_decorator_that_a_partial_or_a_call_keeps_makes_a_dataclass():
    text = (
        "import dataclasses\nfrom functools import partial\n"
        "frozen = partial(dataclasses.dataclass, frozen=True)\nslotted = dataclasses.dataclass(slots=True)\n"
        "@frozen\nclass A:\n    x: int\n@slotted\nclass B:\n    y: int\n"
    )
    assert sorted(knowledge({"d.py": text})) == ["entity:d.A", "entity:d.B"]


def test_a_builtin_type_stays_one_beside_a_star_import_of_a_module_that_is_not_read():
    text = "from enum import *\nclass E(str, Enum):\n    A = 'a'\n"
    assert knowledge({"e.py": text})["entity:e.E"].draft.body["bases"] == ["str", "enum.Enum"]
