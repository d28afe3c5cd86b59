"""`kb eval`: measure what kb finds."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli.options import db_url_option, json_option, repo_option, sha_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.search import evaluation_lines

_EXAMPLES = """\b
Examples:
  kb eval retrieval --suite questions.jsonl
  kb eval retrieval --suite questions.jsonl --json > before.json
  kb eval retrieval --suite questions.jsonl --compare before.json
"""


@click.group("eval")
def command() -> None:
    """Measure what kb finds against judged questions."""


@command.command("retrieval", epilog=_EXAMPLES)
@click.option(
    "--suite", type=click.Path(path_type=Path), required=True, help="JSONL: id, query, relevant targets."
)
@click.option(
    "--compare", type=click.Path(path_type=Path), help="An earlier run (--json) to subtract, query by query."
)
@repo_option
@sha_option
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind; may be repeated.")
@click.option("--path", metavar="FOLDER|GLOB", help="Only what stands in files there.")
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "dense", "lexical"]),
    default="hybrid",
    show_default=True,
    help="Which legs to ask.",
)
@click.option(
    "--fusion",
    type=click.Choice(["convex", "rrf"]),
    default="convex",
    show_default=True,
    help="How hybrid mode brings its legs together.",
)
@click.option(
    "--dense-share", type=click.FloatRange(0, 1), help="Weight of the dense leg. Default: calibrated."
)
@click.option("--expand", is_flag=True, help="Also what is one edge away from the best hits.")
@click.option("--provider", metavar="NAME", help="Ask with this provider's model. Default: the snapshot's.")
@click.option("--model", metavar="NAME|FOLDER", help="Ask with this model. Default: the snapshot's.")
@db_url_option
@json_option
def retrieval(
    *,
    suite: Path,
    compare: Path | None,
    repo: str | None,
    sha: str | None,
    provider: str | None,
    model: str | None,
    db_url: str | None,
    as_json: bool,
    **given: object,
) -> None:
    """Measure search on a suite of judged queries.

    Prints recall, precision, MRR, nDCG and hit rate at 1, 5 and 10 with bootstrap intervals; --json has
    every query.
    """
    from kb.bootstrap import embedding_endpoint, open_app
    from kb.config import load_settings
    from kb.retrieve import evaluation
    from kb.retrieve.search import EmbeddingChoice
    from kb.retrieve.search_request import SearchOptions

    earlier = None if compare is None else evaluation.read_report(compare)
    options = SearchOptions(**given)  # type: ignore[arg-type]  # Click has checked each of them
    endpoint = embedding_endpoint()
    with open_app(load_settings(db_url=db_url)) as app:
        report = evaluation.evaluate(
            app,
            suite,
            options,
            repo=repo,
            sha=sha,
            embedding=EmbeddingChoice(provider, model, endpoint.url, endpoint.key),
        )
    comparison = None if earlier is None else evaluation.compare(report, earlier)
    if as_json:
        payload = report.model_dump(mode="json")
        print_document(
            "eval",
            payload if comparison is None else payload | {"comparison": comparison.model_dump(mode="json")},
        )
    else:
        print_lines(evaluation_lines(report, comparison))
