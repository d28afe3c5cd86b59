"""Fits a list into a token budget: as many items as there is room for, counted on what is really sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from kb.errors import UsageError
from kb.model.served import Unit

DEFAULT_BUDGET = 6000
LEAST_BUDGET = 1000
MOST_BUDGET = 50_000

_AHEAD = 10
"""Items that are read from the database at a time: what a search is asked for, mostly."""
_FIRST = 8
"""How much of a text or list is tried first where not all of it fits."""
_NEAR = 32
"""A cut is within this part of the longest one that fits: looking closer costs more than it shows."""
_SEAM = 2
"""Tokens by which two texts may count more together than apart, and the comma between them."""

Item = TypeVar("Item", bound=BaseModel)
Answer = TypeVar("Answer", bound=BaseModel)


class Measure(Protocol):
    """Counts the tokens of an answer, or of a part of one, as the face sends it."""

    def __call__(self, part: BaseModel, /) -> int:
        """The tokens of it."""
        ...


class Budget:
    """A limit with the measure it is counted by.

    Args:
        tokens: the limit.
        measure: how an answer is counted.

    Raises:
        UsageError: the limit is lower than any answer needs, or absurdly high.
    """

    def __init__(self, tokens: int, measure: Measure) -> None:
        if not LEAST_BUDGET <= tokens <= MOST_BUDGET:
            raise UsageError(f"token_budget is {tokens}: it can be {LEAST_BUDGET} to {MOST_BUDGET}")
        self.tokens = tokens
        self.measure = measure

    def fit(
        self,
        order: Sequence[int],
        start: int,
        most: int | None,
        load: Callable[[Sequence[int]], Sequence[Item]],
        answer: Callable[[Sequence[Item], int], Answer],
        shorten: Callable[[Item, Callable[[Item], int]], Item | None],
    ) -> Answer:
        """The answer with as many items from `start` on as the limit has room for, in order.

        Args:
            order: the whole list.
            start: where this page begins.
            most: at most so many items; None for as many as fit.
            load: items of a part of the list, one for each.
            answer: the answer with some items, given where the next page begins.
            shorten: the item cut until it fits; None where it cannot be. It is told by how many tokens an
                item is over the limit, as the only one of an answer.

        Raises:
            UsageError: not even one shortened item fits; or the page would begin beyond the end.
        """
        if start and start >= len(order):
            raise UsageError("the cursor is beyond the end of the list", hint="ask again without a cursor")
        end = len(order) if most is None else min(len(order), start + most)
        room = self.tokens - self.measure(answer((), start))
        chosen: list[Item] = []
        at = start
        while at < end:
            batch = load(order[at : min(at + _AHEAD, end)])
            fitting = 0
            for item in batch:
                cost = self.measure(item) + _SEAM
                if cost > room:
                    break
                room -= cost
                chosen.append(item)
                fitting += 1
            at += fitting
            if fitting < len(batch) or not batch:
                break
        if not chosen and at < end:
            first = load(order[at : at + 1])[0]
            short = shorten(first, lambda item: self.measure(answer((item,), at + 1)) - self.tokens)
            if short is None:
                raise UsageError(
                    "one unit alone is larger than token_budget", hint=f"ask with more than {self.tokens}"
                )
            return answer((short,), at + 1)
        made = answer(chosen, start + len(chosen))
        # Apart and together a text may count differently by a few tokens: near the limit the whole is counted.
        while chosen and room < 2 * len(chosen) + 16 and self.measure(made) > self.tokens:
            chosen.pop()
            made = answer(chosen, start + len(chosen))
        return made

    def _over(self, cut: _Cut[Any], length: int) -> int:
        return self.measure(cut.at(length)) - self.tokens

    def trimmed(
        self, answer: Shortened, parts: Sequence[str], told: Callable[[Shortened], Shortened]
    ) -> Shortened:
        """An answer that has no pages, within the limit: where it is larger its lists and texts are cut.

        Args:
            answer: the whole answer.
            parts: names of lists and texts of it, or of records in it (`anchor.symbol`), that may be cut: of each,
                in this order, as much is left as there is room for. Those that were cut are told in `shortened`.
            told: the answer with what it says of the length of its lists, as they are now.

        Raises:
            UsageError: it does not fit even without them.
        """
        answer = told(answer)
        for name in parts:
            if self.measure(answer) <= self.tokens:
                return answer
            whole = _part(answer, name)
            if not whole:
                continue
            cut = _Cut(answer, name, whole, told)
            answer = cut.at(most_that_fits(len(whole), partial(self._over, cut)))
        if self.measure(answer) > self.tokens:
            raise UsageError(
                "the answer alone is larger than token_budget", hint=f"ask with more than {self.tokens}"
            )
        return answer


class ShortenedAnswer(BaseModel):
    """An answer without pages: what does not fit the budget is cut."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    shortened: Annotated[
        tuple[str, ...],
        Field(description="Parts that were cut to fit token_budget: ask with more for all of them."),
    ] = ()


Shortened = TypeVar("Shortened", bound=ShortenedAnswer)


@dataclass(frozen=True)
class _Cut(Generic[Shortened]):
    """One part of an answer, to be cut at some length."""

    answer: Shortened
    name: str
    whole: Sequence[Any]
    told: Callable[[Shortened], Shortened]

    def at(self, length: int) -> Shortened:
        """The answer with so many of the part's entries or characters."""
        shortened = (*self.answer.shortened, self.name)
        return self.told(
            _with_part(self.answer, self.name, self.whole[:length]).model_copy(
                update={"shortened": shortened}
            )
        )


def _part(record: BaseModel, name: str) -> Sequence[Any]:
    """A list or text of a record, or of a record in it; empty where there is none."""
    first, _, rest = name.partition(".")
    value = getattr(record, first)
    if rest and value is not None:
        return _part(value, rest)
    return () if value is None else value


def _with_part(record: Item, name: str, value: Sequence[Any]) -> Item:
    first, _, rest = name.partition(".")
    return record.model_copy(
        update={first: _with_part(getattr(record, first), rest, value) if rest else value}
    )


def shorten_unit(unit: Unit, over: Callable[[Unit], int]) -> Unit | None:
    """The unit without its body, then with less provenance, then with less text, until it fits.

    Its key and one line of provenance stay. None where even that does not fit.
    """
    unit = unit.model_copy(update={"body": {}, "shortened": ("body",)})
    if over(unit) <= 0:
        return unit
    whole = len(unit.provenance) + unit.more_places

    def cut(places: int, letters: int) -> Unit:
        return unit.model_copy(
            update={
                "text": unit.text[:letters],
                "title": unit.title[:80],
                "provenance": unit.provenance[:places],
                "more_places": whole - places,
                "shortened": ("body", "text", "title", "provenance"),
            }
        )

    if over(cut(1, 0)) > 0:
        return None
    # One place proves it; more of them take no more than half of the room from the text.
    half = most_that_fits(len(unit.text), lambda n: over(cut(1, n)))
    places = max(1, most_that_fits(len(unit.provenance), lambda n: over(cut(n, half // 2))))
    return cut(places, most_that_fits(len(unit.text), lambda n: over(cut(places, n))))


def most_that_fits(limit: int, over: Callable[[int], int]) -> int:
    """A number up to `limit` that fits and is near the greatest that does; 0 where none does.

    Args:
        limit: the most that there is.
        over: by how many tokens a number is over; it rises with the number, about evenly. Each look costs.
    """
    low, under = 0, over(0)
    if under > 0 or limit == 0:
        return 0
    # From below, by what the last step cost: what is far too large is never counted.
    high = min(limit, _FIRST)
    while (above := over(high)) <= 0:
        if high == limit:
            return limit
        each = (above - under) / (high - low)
        low, under = high, above
        reached = low + int(-under / each) + 1 if each > 0 else limit
        high = min(limit, max(2 * low, reached))
    straight = True
    while high - low > max(1, low // _NEAR):
        share = -under / (above - under) if straight else 0.5
        straight = not straight  # every second time by half: a line can miss on one side for ever
        middle = min(max(low + int((high - low) * share), low + 1), high - 1)
        found = over(middle)
        if found <= 0:
            low, under = middle, found
        else:
            high, above = middle, found
    return low
