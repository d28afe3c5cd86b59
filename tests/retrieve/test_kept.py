"""What a server keeps between questions: made once, bounded, and never the trace of a failure."""

import threading

import pytest

from kb.retrieve.kept import Kept


def test_a_value_is_made_once():
    kept = Kept()
    made = []
    for _ in range(3):
        assert kept.get("list", lambda: made.append(1) or ["a"]) == ["a"]
    assert made == [1]


def test_who_asks_while_a_value_is_made_waits_for_it():
    kept = Kept()
    begun, go_on = threading.Event(), threading.Event()
    made = []

    def slowly():
        begun.set()
        assert go_on.wait(30)
        made.append(1)
        return "value"

    answers = []
    threads = [threading.Thread(target=lambda: answers.append(kept.get("key", slowly))) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert begun.wait(30)
    go_on.set()
    for thread in threads:
        thread.join()
    assert (answers, made) == (["value", "value"], [1])


def test_the_one_asked_for_longest_ago_is_given_up_first():
    kept = Kept(most=60)
    made = []

    def make(name):
        return lambda: made.append(name) or [name] * 10

    for name in ("a", "b", "a", "c", "d"):  # 20 each: with d, b is one too many
        kept.get(name, make(name))
    made.clear()
    for name in ("a", "c", "d", "b"):
        kept.get(name, make(name))
    assert made == ["b"]


def test_a_value_larger_than_everything_is_answered_all_the_same():
    kept = Kept(most=5)
    assert kept.get("a", lambda: [1] * 50) == [1] * 50
    assert kept.get("b", lambda: [2]) == [2]


def test_a_failure_is_not_kept():
    kept = Kept()
    with pytest.raises(LookupError):
        kept.get("key", {}.popitem)
    assert kept.get("key", lambda: "now") == "now"
