"""Passages: what is one, what its text is, and what does not change it."""

import black
import pytest

from evals.folders import linked
from kb.extract.passages import PassagesExtractor
from kb.extract.prose import sections
from kb.extract.wording import words_of

SOURCE = '''"""Module words."""

import os

LIMIT = 3


class Order:
    """Class words."""

    size: int = 1

    @property
    def total(self):
        """Method words."""
        def inner():
            return "inner words"
        return inner() + LIMIT


def main(): print('it\\'s main')
'''


def passages(source, path="shop/orders.py"):
    return {one.draft.logical_key: one for one in linked({path: source.encode()}, [PassagesExtractor()])}


def test_each_definition_has_the_words_that_are_its_own():
    found = passages(SOURCE)
    texts = {key: one.draft.text for key, one in found.items()}
    name = next(key for key in texts if key.endswith(".main")).removesuffix(".main")
    assert texts[name] == "Module words import os LIMIT 3"
    assert texts[f"{name}.Order"] == "class Order Class words size int 1"
    assert texts[f"{name}.Order.total"] == "property def total self Method words return inner LIMIT"
    assert texts[f"{name}.Order.total.<locals>.inner"] == "def inner return inner words"
    assert texts[f"{name}.main"] == "def main print it s main"


def test_a_class_does_not_stand_on_its_methods():
    before, after = passages(SOURCE), passages(SOURCE.replace("inner() + LIMIT", "inner() - LIMIT"))
    key = next(key for key in before if key.endswith(".Order"))
    assert before[key].draft == after[key].draft


def test_a_formatter_and_comments_change_no_passage():
    commented = SOURCE.replace("LIMIT = 3", "# note\nLIMIT = 3  # why").replace(
        "import os", "# top\nimport os"
    )
    formatted = black.format_str(commented, mode=black.Mode())
    assert formatted != SOURCE
    before = {key: one.draft for key, one in passages(SOURCE).items()}
    assert {key: one.draft for key, one in passages(formatted).items()} == before


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 'a#b' # c", "x a b"),
        ('u"one" r"\\d"', "one d"),
        ("('ab'\n   # note\n 'cd')", "abcd"),
        ("0XFF + 1E5", "0xff 1e5"),
        ('"tab\\tstop"', "tab stop"),
        ("'''it's\nlong''' + f\"{x}\"", "it s long x"),
        ("größe = 1", "größe 1"),
    ],
)
def test_words_of_source(source, words):
    assert words_of(source, 100) == words


def test_markdown_sections_are_told_by_their_headings():
    text = b"intro\n\n# A\n\ntext of\nA\n\n```\n# no heading\n```\n\n## B\n\nb\n\nC\n===\n\nc\n"
    assert [(one.headings, one.start_line, one.end_line) for one in sections(text, "markdown")] == [
        ((), 1, 2),
        (("A",), 3, 11),
        (("A", "B"), 12, 15),
        (("C",), 16, 19),
    ]


def test_restructured_sections_take_their_level_from_first_use():
    text = b"=====\nTitle\n=====\n\nintro\n\nPart\n----\n\nwords\n\nDeep\n~~~~\n\nmore\n\nNext\n----\n\nend\n"
    assert [one.headings for one in sections(text, "rst")] == [
        ("Title",),
        ("Title", "Part"),
        ("Title", "Part", "Deep"),
        ("Title", "Next"),
    ]


def test_a_long_section_goes_on_in_another_passage():
    text = "# Long\n\n" + "\n\n".join("word " * 150 for _ in range(6))
    found = sections(text.encode(), "markdown")
    assert len(found) == 2
    assert {one.headings for one in found} == {("Long",)}


def test_rewrapped_prose_is_the_same_text():
    (one,) = sections(b"# A\n\nsome words\nin lines\n", "markdown")
    (other,) = sections(b"# A\n\nsome  words in\nlines\n", "markdown")
    assert one.text == other.text == "# A\n\nsome words in lines"
