"""The measures against values worked out by hand."""

import math

import pytest

from kb.retrieve.metrics import bootstrap_interval, measure, paired_interval

RANKING = ["a", "x", "b", "y", "c"]
JUDGED = {"a": 1, "b": 1, "d": 1, "y": 0}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recall@1", 1 / 3),
        ("recall@3", 2 / 3),
        ("recall@5", 2 / 3),
        ("precision@1", 1.0),
        ("precision@3", 2 / 3),
        ("precision@5", 2 / 5),
        ("hit@1", 1.0),
        ("mrr@5", 1.0),
        # DCG = 1/log2(2) + 1/log2(4) = 1.5; ideal = 1/log2(2) + 1/log2(3) + 1/log2(4) = 2.1309
        ("ndcg@3", 1.5 / (1 + 1 / math.log2(3) + 0.5)),
        ("ndcg@1", 1.0),
    ],
)
def test_binary_judgements(name, expected):
    assert measure(RANKING, JUDGED, [1, 3, 5])[name] == pytest.approx(expected)


def test_graded_judgements():
    # DCG = 1 + 3/log2(3) = 2.8928; ideal = 3 + 1/log2(3) = 3.6309
    assert measure(["low", "high"], {"low": 1, "high": 3}, [10])["ndcg@10"] == pytest.approx(
        0.79671, abs=1e-4
    )


def test_the_first_relevant_place_makes_the_reciprocal_rank():
    values = measure(["x", "y", "a"], {"a": 1}, [2, 3])
    assert values["mrr@3"] == pytest.approx(1 / 3)
    assert values["mrr@2"] == 0
    assert values["hit@2"] == 0
    assert values["hit@3"] == 1


def test_a_document_named_twice_counts_once():
    values = measure(["a", "a", "b"], {"a": 1, "b": 1}, [2])
    assert values["recall@2"] == 1
    assert values["ndcg@2"] == 1


def test_nothing_found_and_nothing_relevant_are_zero():
    assert set(measure([], {"a": 1}, [10]).values()) == {0.0}
    assert set(measure(["a"], {}, [10]).values()) == {0.0}


def test_the_interval_holds_the_mean_and_shrinks_with_more_queries():
    few, many = [0.0, 1.0] * 5, [0.0, 1.0] * 500
    low, high = bootstrap_interval(few)
    assert low < 0.5 < high
    # The mean of n coin flips has a standard error of 0.5 / sqrt(n); 1.96 of them each way.
    narrow = bootstrap_interval(many)
    assert narrow[0] == pytest.approx(0.5 - 1.96 * 0.5 / math.sqrt(1000), abs=0.006)
    assert narrow[1] == pytest.approx(0.5 + 1.96 * 0.5 / math.sqrt(1000), abs=0.006)
    assert bootstrap_interval([0.7] * 4) == (pytest.approx(0.7), pytest.approx(0.7))


def test_a_constant_gain_is_a_certain_one():
    low, high = paired_interval([0.1, 0.5, 0.9], [0.2, 0.6, 1.0])
    assert low == pytest.approx(0.1)
    assert high == pytest.approx(0.1)
