"""nDCG@10 on the small public sets stays within the recorded band, leg by leg and fused."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from evals.retrieval.datasets import ABSENT, text_set, text_sets
from evals.retrieval.text_runs import embedded_legs, mean_ndcg
from kb.providers import open_provider
from tests.databases import fresh_database

pytestmark = pytest.mark.gate("retrieval.no-regression")

BANDS = tomllib.loads((Path(__file__).parent / "retrieval_bands.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def database(server_url, template):
    yield from fresh_database(server_url, template)


@pytest.mark.parametrize("name", sorted(BANDS["sets"]))
def test_ndcg_stays_within_its_band(database, name):
    if name not in text_sets():
        pytest.skip(ABSENT)
    with database.writer() as connection:
        connection.autocommit = True
        texts = text_set(name)
        legs = embedded_legs(connection, texts, open_provider("static"))
        queries = [query for query in texts.queries if texts.relevant.get(query)][: BANDS["queries"]]
        found = {mode: mean_ndcg(legs, texts, queries, mode) for mode in ("lexical", "dense", "hybrid")}
    print(name, {mode: round(value, 4) for mode, value in found.items()})
    for mode, value in found.items():
        assert value == pytest.approx(BANDS["sets"][name][mode], abs=BANDS["width"]), mode
    assert found["hybrid"] >= max(found["lexical"], found["dense"]) - BANDS["width"]
