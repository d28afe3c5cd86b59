from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path

import pytest

GATES = Path(__file__).parents[2] / "evals" / "gates"
FIELDS = {"id", "behaviour", "why", "known_divergence"}


def _manifest() -> list[dict[str, str]]:
    return tomllib.loads((GATES / "manifest.toml").read_text(encoding="utf-8")).get("gate", [])


def _marked(decorators: list[ast.expr]) -> set[str]:
    """The ids in `@pytest.mark.gate("id")` among a definition's decorators."""
    return {
        str(ast.literal_eval(node.args[0]))
        for node in decorators
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.gate" and node.args
    }


def _module_marks(module: ast.Module) -> set[str]:
    """The ids in a module's `pytestmark = pytest.mark.gate("id")`, or in a list of such marks."""
    marks = [
        node.value
        for node in module.body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["pytestmark"]
    ]
    return {found for mark in marks for found in _marked(mark.elts if isinstance(mark, ast.List) else [mark])}


def _gates_by_test() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in sorted(GATES.rglob("test_*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        outer = [(module.body, _module_marks(module))]
        while outer:
            body, marks = outer.pop()
            for node in body:
                if isinstance(node, ast.ClassDef):
                    # A hypothesis state machine is run through `TestX = Machine.TestCase`; its class is a test too.
                    outer.append((node.body, marks | _marked(node.decorator_list)))
                elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    name = f"{path.relative_to(GATES)}::{node.name}"
                    found[name] = marks | _marked(node.decorator_list)
    return found


def test_every_test_under_the_gates_folder_names_its_gate():
    assert [test for test, gates in _gates_by_test().items() if not gates] == []


def test_every_gate_that_a_test_names_is_in_the_manifest():
    known = {gate["id"] for gate in _manifest()}
    assert {test: gates - known for test, gates in _gates_by_test().items() if gates - known} == {}


def test_every_gate_of_the_manifest_has_a_test():
    named = set().union(*_gates_by_test().values())
    assert [gate["id"] for gate in _manifest() if gate["id"] not in named] == []


def test_gate_ids_are_unique():
    assert [gate for gate, times in Counter(g["id"] for g in _manifest()).items() if times > 1] == []


@pytest.mark.parametrize("gate", _manifest(), ids=lambda gate: gate["id"])
def test_a_gate_says_what_holds_why_and_where_it_does_not(gate):
    assert set(gate) == FIELDS
    assert gate["behaviour"].strip()
    assert gate["why"].strip()
