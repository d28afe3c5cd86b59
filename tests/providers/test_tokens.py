"""Tokens are counted piece by piece, and come to what the tokenizer says of the whole."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from kb.providers.tokens import token_counter


def wheel_file() -> Path:
    folder = next(iter(find_spec("wordllama").submodule_search_locations))
    return Path(folder) / "tokenizers" / "l2_supercat_tokenizer_config.json"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_file(str(wheel_file()))


def tokens(tokenizer, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


ODD = st.text(
    st.sampled_from("aZé ß漢字_\"'{}[]:,.\\/<>-+=019\t\n\r\u2581\u00a0\u2009“”»«…😀\u0301()$#*"), max_size=60
)


@settings(deadline=None, max_examples=300)
@given(st.one_of(ODD, st.text(max_size=60)))
@example("")
@example(" ")
@example("   ")
@example("a<s>b</s> <unk>")
@example("  leading, trailing  ")
@example("\u2581under\u2581score \u2581")
@example('{"sha":"0123456789abcdef","n":[1,2,33]}')
@example('__init__(self, *, _x_: "dict[str, int]" = {}) -> None:')
@example("cliché.” »quoted« .“")
def test_a_text_counts_as_the_tokenizer_counts_it(tokenizer, text):
    assert token_counter().count(text) == tokens(tokenizer, text)


def test_whole_files_count_as_the_tokenizer_counts_them(tokenizer):
    root = Path(__file__).parents[2]
    files = [*sorted((root / "src/kb/mcp").glob("*.py")), root / "README.md", root / "uv.lock"]
    for file in files:
        text = json.dumps({"text": file.read_text(encoding="utf-8")[:20_000]}, ensure_ascii=False)
        assert token_counter().count(text) == tokens(tokenizer, text), file


def test_no_token_of_the_vocabulary_reaches_across_a_seam():
    vocabulary = json.loads(wheel_file().read_text(encoding="utf-8"))["model"]["vocab"]
    texts = [token for token in vocabulary if not re.fullmatch(r"<0x..>|<unk>|</?s>", token)]
    letter, sign, digit = "[A-Za-z]", "[\x00-\x1f!-/:-@\\[-`{-~]", "[0-9]"
    seams = (f"{letter}{sign}", f"{sign}{letter}", f"{digit}.", f".{digit}", "[^\u2581]\u2581", "\n.", ".\n")
    across = [token for token in texts if any(re.search(seam, token, re.DOTALL) for seam in seams)]
    assert across == []
