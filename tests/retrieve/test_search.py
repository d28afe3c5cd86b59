"""`kb search` over a real repository: units with provenance, notices, models, budgets."""

import json
import shutil

import pytest

from kb.cli.render.search import evaluation_lines
from kb.embed.embedding import embed_snapshots
from kb.errors import NotFoundError, UsageError
from kb.providers import open_provider
from kb.providers.api import EndpointError
from kb.providers.tokens import token_counter
from kb.retrieve import evaluation
from kb.retrieve.search import EmbeddingChoice, search
from kb.retrieve.search_request import SearchOptions
from kb.retrieve.select import select_snapshots
from tests.databases import fresh_database
from tests.gitrepo import GitRepo
from tests.indexing import TestParts, index
from tests.providers.endpoint import Endpoint
from tests.providers.hashed import HashedWords
from tests.providers.test_contract import MINILM

ORDERS = '''"""Orders of the shop."""

from shop.money import round_half_up


class Order:
    """What a customer wants."""

    limit = 10

    def grand_total(self, lines):
        # a comment that no unit speaks of
        subtotal = sum(line.price for line in lines)
        return round_half_up(subtotal)


def cancel_order(order):
    """Gives the money back."""
    return order
'''
MONEY = '''def round_half_up(amount):
    """Banker's enemies."""
    return int(amount + 0.5)
'''
README = "# Shop\n\nSells things.\n\n## Refunds\n\nA refund takes three working days.\n"


@pytest.fixture(scope="module")
def parts(server_url, template, tmp_path_factory):
    for database in fresh_database(server_url, template):
        yield TestParts(database, tmp_path_factory.mktemp("home"))


def shop_at(parts, folder):
    repo = GitRepo(folder)
    repo.write("shop/__init__.py", "").write("shop/orders.py", ORDERS).write("shop/money.py", MONEY)
    repo.write("README.md", README).write("tests/test_orders.py", "def test_grand_total():\n    assert 1\n")
    index(parts, repo.commit("first"))
    return str(repo.folder)


@pytest.fixture(scope="module")
def shop(parts, tmp_path_factory):
    """Never embedded."""
    return shop_at(parts, tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def embedded(parts, tmp_path_factory):
    shop = shop_at(parts, tmp_path_factory.mktemp("embedded"))
    embed_snapshots(
        parts, select_snapshots(parts, shop, None), open_provider("static"), None, lambda *_: None
    )
    return shop


def keys(result):
    return [hit.unit.key for hit in result.hits]


def test_it_works_before_embedding_and_says_what_to_run(parts, shop):
    result = search(parts, "refund working days", SearchOptions(), repo=shop)
    assert result.mode == "lexical"
    assert result.model is None
    assert any("kb embed" in notice for notice in result.notices)
    best = result.hits[0].unit
    assert best.key == "passage:README.md#Shop/Refunds"
    assert [(place.file, place.start_line, place.end_line) for place in best.provenance] == [
        ("README.md", 5, 7)
    ]


def test_dense_mode_without_vectors_is_an_error_that_says_what_to_run(parts, shop):
    with pytest.raises(UsageError) as failed:
        search(parts, "order", SearchOptions(mode="dense"), repo=shop)
    assert "kb embed" in failed.value.hint


def test_the_code_of_a_definition_is_found_where_no_extractor_named_it(parts, embedded):
    result = search(parts, "subtotal price", SearchOptions(kinds=("passage",)), repo=embedded)
    assert keys(result)[0] == "passage:shop.orders.Order.grand_total"
    (place,) = result.hits[0].unit.provenance
    assert (place.file, place.start_line, place.end_line) == ("shop/orders.py", 11, 14)


def test_comments_are_searched_in_no_passage(parts, embedded):
    result = search(parts, "comment speaks", SearchOptions(mode="lexical"), repo=embedded)
    assert not result.hits


def test_source_that_is_found_reads_as_it_stands_there(parts, embedded):
    result = search(parts, "subtotal price", SearchOptions(kinds=("passage",)), repo=embedded)
    text = {hit.unit.key: hit.unit.text for hit in result.hits}
    assert text["passage:shop.orders.Order.grand_total"] == (
        "def grand_total(self, lines):\n"
        "    # a comment that no unit speaks of\n"
        "    subtotal = sum(line.price for line in lines)\n"
        "    return round_half_up(subtotal)"
    )
    classes = search(parts, "Order limit", SearchOptions(kinds=("passage",)), repo=embedded)
    text = {hit.unit.key: hit.unit.text for hit in classes.hits}
    assert text["passage:shop.orders.Order"] == "class Order:\n...\n    limit = 10"


def test_a_long_method_is_shown_at_the_margin_and_cut(parts, tmp_path):
    repo = GitRepo(tmp_path / "long")
    body = "".join(f"        zebra{number} = {number}\n" for number in range(40))
    repo.write("long.py", f"class Zoo:\n    def feed(self):\n{body}").commit()
    index(parts, repo)
    result = search(parts, "feed zebra7", SearchOptions(kinds=("passage",)), repo="long")
    (text,) = (hit.unit.text for hit in result.hits if hit.unit.key == "passage:long.Zoo.feed")
    lines = text.split("\n")
    assert lines[:2] == ["def feed(self):", "    zebra0 = 0"]
    assert lines[29:] == ["    zebra28 = 28", "..."]


def test_source_that_cannot_be_read_is_said_to_be_so(parts, tmp_path):
    shop_at(parts, tmp_path / "leaving")
    (tmp_path / "leaving").rename(tmp_path / "left")
    result = search(parts, "subtotal price", SearchOptions(kinds=("passage",)), repo="leaving")
    assert result.hits[0].unit.freshness.status == "unknown"
    said, words = result.hits[0].unit.text.split("\n", 1)
    assert said == "(the lines cannot be read now; their words:)"
    assert words.startswith("def grand_total self lines subtotal")


def test_a_definition_that_is_named_comes_before_its_test(parts, embedded):
    result = search(parts, "grand_total", SearchOptions(), repo=embedded)
    assert result.mode == "hybrid"
    assert "shop.orders.Order.grand_total" in keys(result)[0]
    assert result.hits[0].parts.evidence > 0


def test_another_model_than_the_snapshots_is_an_error_that_says_what_to_run(parts, embedded):
    with pytest.raises(UsageError) as failed:
        search(parts, "order", SearchOptions(), repo=embedded, embedding=EmbeddingChoice(provider="onnx"))
    assert "kb embed --provider onnx" in failed.value.hint


@pytest.mark.parametrize(
    "choice", [EmbeddingChoice("onnx"), EmbeddingChoice("static"), EmbeddingChoice(None, "m")]
)
def test_a_model_that_is_asked_for_is_not_silently_left_out(parts, shop, choice):
    with pytest.raises(UsageError, match="is not embedded") as failed:
        search(parts, "order", SearchOptions(), repo=shop, embedding=choice)
    assert "kb embed --provider" in failed.value.hint


def test_a_model_is_found_by_its_name_whichever_was_used_last(parts, tmp_path):
    shop = shop_at(parts, tmp_path / "both")
    snapshots = select_snapshots(parts, shop, None)
    embed_snapshots(parts, snapshots, open_provider("static"), None, lambda *_: None)
    embed_snapshots(parts, snapshots, HashedWords(), None, lambda *_: None)
    named = EmbeddingChoice(model="wordllama-l2-supercat-256")
    found = search(parts, "order", SearchOptions(), repo=shop, embedding=named)
    assert found.model == "static:wordllama-l2-supercat-256"
    with pytest.raises(UsageError, match="not with other"):
        search(parts, "order", SearchOptions(), repo=shop, embedding=EmbeddingChoice(model="other"))


def test_a_model_that_is_called_by_its_name_is_opened_by_its_folder(parts, tmp_path):
    if not MINILM.is_dir():
        pytest.skip("../shared/models is absent")
    shop = shop_at(parts, tmp_path / "minilm")
    provider = open_provider("onnx", str(MINILM))
    embed_snapshots(parts, select_snapshots(parts, shop, None), provider, str(MINILM), lambda *_: None)
    for choice in (EmbeddingChoice(model=MINILM.name), EmbeddingChoice("onnx", MINILM.name)):
        found = search(parts, "order", SearchOptions(), repo=shop, embedding=choice)
        assert found.model == provider.model_id


def test_two_models_in_folders_of_one_name_are_told_apart(parts, tmp_path):
    if not MINILM.is_dir():
        pytest.skip("../shared/models is absent")
    pytest.importorskip("onnxruntime")
    shop = shop_at(parts, tmp_path / "two")
    folders = [tmp_path / at / "minilm" for at in ("one", "other")]
    for folder in folders:
        shutil.copytree(MINILM, folder)
    with (folders[1] / "model.onnx").open("ab") as model:
        model.write(b"\x32\x01x")  # the graph's field doc_string, once more: another file, the same model
    snapshots = select_snapshots(parts, shop, None)
    first, second = (open_provider("onnx", str(folder)) for folder in folders)
    assert first.model_id != second.model_id
    embed_snapshots(parts, snapshots, first, str(folders[0]), lambda *_: None)

    def model(name):
        return search(parts, "order", SearchOptions(), repo=shop, embedding=EmbeddingChoice(model=name)).model

    with pytest.raises(
        UsageError, match=f"embedded with {first.model_id}, not with {second.model_id}"
    ) as failed:
        model(str(folders[1]))
    assert f"kb embed --provider onnx --model {folders[1]} " in failed.value.hint
    report = embed_snapshots(parts, snapshots, second, str(folders[1]), lambda *_: None)
    assert report.embedded > 0
    assert [model(str(folder)) for folder in folders] == [first.model_id, second.model_id]
    assert model("minilm") == second.model_id
    assert model(first.model_id.removeprefix("onnx:")) == first.model_id


@pytest.mark.parametrize("mode", ["hybrid", "dense"])
def test_where_the_endpoint_is_down_the_hint_says_what_needs_none(parts, tmp_path, mode):
    shop = shop_at(parts, tmp_path / "away")
    with Endpoint() as endpoint:
        provider = open_provider("openai", "away", url=endpoint.url, key="sesame")
        embed_snapshots(parts, select_snapshots(parts, shop, None), provider, "away", lambda *_: None)
        choice = EmbeddingChoice(url=endpoint.url, key="sesame")
    open_provider.cache_clear()
    suite = tmp_path / "suite.jsonl"
    suite.write_text('{"id": "a", "query": "order", "relevant": ["shop/orders.py"]}')
    options = SearchOptions(mode=mode)
    for ask in (
        lambda: search(parts, "order", options, repo=shop, embedding=choice),
        lambda: search(parts, "again", options, repo=shop, embedding=choice),
        lambda: evaluation.evaluate(parts, suite, options, repo=shop, embedding=choice),
    ):
        with pytest.raises(EndpointError, match="did not answer") as failed:
            ask()
        assert failed.value.hint == (
            "is the server running, and KB_EMBED_URL right? Or without the model: --mode lexical"
        )
    assert search(parts, "order", SearchOptions(mode="lexical"), repo=shop).hits


@pytest.mark.parametrize(
    ("query", "options", "said"),
    [
        ("order", SearchOptions(kinds=("symbols",)), "no unit is of kind symbols; kinds here: "),
        ("order", SearchOptions(path="no/such"), "no unit stands in files at no/such"),
        ("of the", SearchOptions(), "no word to search for"),
        ("?!", SearchOptions(mode="lexical"), "no word to search for"),
    ],
)
def test_why_nothing_is_found_is_said(parts, shop, query, options, said):
    result = search(parts, query, options, repo=shop)
    assert not result.hits
    assert [notice for notice in result.notices if said in notice]


def test_the_token_budget_stops_the_list_and_counts_the_rest(parts, embedded):
    everything = search(parts, "order", SearchOptions(), repo=embedded)
    counted = [token_counter().count(f"{hit.unit.title}\n{hit.unit.text}") for hit in everything.hits]
    two = sum(counted[:2])
    for budget, fitting in ((1, 1), (two - 1, 1), (two, 2), (sum(counted), len(counted))):
        some = search(parts, "order", SearchOptions(), repo=embedded, token_budget=budget)
        assert keys(some) == keys(everything)[:fitting]
        assert some.omitted == len(everything.hits) - fitting


def test_explained_terms_add_up(parts, embedded):
    hit = search(parts, "cancel order", SearchOptions(explain=True), repo=embedded).hits[0]
    assert sum(hit.parts.terms.values()) == pytest.approx(hit.parts.lexical, abs=1e-3)


def test_an_empty_query_is_refused(parts, embedded):
    with pytest.raises(UsageError):
        search(parts, "  ", SearchOptions(), repo=embedded)


def test_a_suite_is_measured_and_compared(parts, embedded, tmp_path):
    suite = tmp_path / "suite.jsonl"
    lines = [
        {"id": "a", "query": "where is the grand total computed", "relevant": ["shop/orders.py"]},
        {"id": "b", "query": "refund days", "relevant": {"passage:README.md#Shop/Refunds": 1}},
        {"id": "c", "query": "unanswerable", "relevant": {}},
    ]
    suite.write_text("\n".join(map(json.dumps, lines)))
    report = evaluation.evaluate(parts, suite, SearchOptions(), repo=embedded)
    assert (report.queries, report.unjudged) == (2, 1)
    assert report.measures["mrr@10"] == 1.0
    assert report.measures["recall@1"] == 1.0
    assert [outcome.ranking[0] for outcome in report.outcomes] == [
        "shop/orders.py",
        "passage:README.md#Shop/Refunds",
    ]
    assert (report.targets, report.absent, report.notices) == (2, (), ())
    comparison = evaluation.compare(report, report)
    assert comparison.differences["ndcg@10"] == (0.0, 0.0, 0.0)


def judged(folder, *targets):
    suite = folder / "suite.jsonl"
    lines = [{"id": at, "query": "order", "relevant": [target]} for at, target in enumerate(targets)]
    suite.write_text("\n".join(map(json.dumps, lines)))
    return suite


def test_judged_targets_that_no_search_can_find_are_counted(parts, tmp_path):
    repo = GitRepo(tmp_path / "reach")
    repo.write("orders.py", "class Order:\n    pass\n").write("data.bin", b"\0\1").write("empty.py", "")
    repo.commit()
    index(parts, repo)
    suite = judged(
        tmp_path, "orders.py", "symbol:orders.Order", "data.bin", "gone.py", "symbol:orders.Gone", "gone.py"
    )
    report = evaluation.evaluate(parts, suite, SearchOptions(), repo="reach")
    assert report.targets == 5
    assert report.absent == ("gone.py", "symbol:orders.Gone")
    assert report.without_units == ("data.bin",)
    assert report.filtered_out == ()
    assert report.notices == (
        "2 of 5 judged targets are not in the snapshot: gone.py, symbol:orders.Gone",
        "1 of 5 judged targets is a file without units: data.bin",
    )
    assert [line for line in evaluation_lines(report, None) if "2 of 5 judged targets" in line]
    of_kind = evaluation.evaluate(parts, suite, SearchOptions(kinds=("module", "modul")), repo="reach")
    assert of_kind.filtered_out == ("symbol:orders.Order",)
    assert of_kind.matched == 2
    assert of_kind.notices[0].startswith("no unit is of kind modul; kinds here: ")
    assert "1 of 5 judged targets does not pass the filters: symbol:orders.Order" in of_kind.notices


@pytest.mark.parametrize(
    ("targets", "options", "said"),
    [
        (["shop/orders.py"], SearchOptions(kinds=("symbols",)), "no unit is of kind symbols; kinds here"),
        (["shop/orders.py"], SearchOptions(path="no/such"), "no unit stands in files at no/such"),
        (["shop/orders.py"], SearchOptions(kinds=("passage",), path="shop/money.py"), "1 of 1 judged target"),
        (["gone.py", "symbol:gone"], SearchOptions(), "2 of 2 judged targets are not in the snapshot"),
    ],
)
def test_a_suite_of_which_nothing_can_be_found_is_an_error(parts, shop, tmp_path, targets, options, said):
    with pytest.raises(NotFoundError) as failed:
        evaluation.evaluate(parts, judged(tmp_path, *targets), options, repo=shop)
    assert said in failed.value.message
    assert failed.value.data["targets"] == len(targets)
    assert len(failed.value.data["absent"]) + len(failed.value.data["filtered_out"]) == len(targets)


@pytest.mark.parametrize(
    "line",
    [
        '{"id": 1}',
        "no json",
        '{"id": "a", "query": "q", "relevant": 3}',
        '{"id":"a","query":"q","relevant":{}}',
        '{"id":"a","query":"q","relevant":"shop/orders.py"}',
        '{"id":"a","query":"q","relevant":{"shop/orders.py":0.5}}',
        '{"id":"a","query":"q","relevant":{"shop/orders.py":NaN}}',
        '{"id":"a","query":"q","relevant":{"shop/orders.py":Infinity}}',
        '{"id":"a","query":["q"],"relevant":["shop/orders.py"]}',
        '{"id":"a","query":" ","relevant":["shop/orders.py"]}',
        '{"id":"a","query":"\\ud800","relevant":["shop/orders.py"]}',
        '{"id":"a","query":"q","relevant":["\\ud800"]}',
        '{"id":"a","query":"q","relevant":["a\\u0000"]}',
        b"\xff\xfe",
    ],
)
def test_a_suite_that_is_none_is_refused(tmp_path, line):
    suite = tmp_path / "suite.jsonl"
    suite.write_bytes(line if isinstance(line, bytes) else line.encode())
    with pytest.raises(UsageError):
        evaluation.read_suite(suite)
    with pytest.raises(NotFoundError):
        evaluation.read_suite(tmp_path / "absent.jsonl")


def test_a_line_of_a_suite_ends_at_a_line_feed_and_nowhere_else(tmp_path):
    suite = tmp_path / "suite.jsonl"
    suite.write_bytes(
        '\ufeff{"id": 1, "query": "one\u2028two\u0085", "relevant": {"a.py": 2.0}}\r\n\r\n'.encode()
    )
    ((judged,), unjudged) = evaluation.read_suite(suite)
    assert (judged.query, judged.relevant, unjudged) == ("one\u2028two\u0085", {"a.py": 2}, 0)
