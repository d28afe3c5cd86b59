"""`kb search`: find units by words, names and meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kb.cli.options import db_url_option, json_option, repo_option, sha_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.search import search_lines

if TYPE_CHECKING:
    from kb.retrieve.search_request import SearchOptions

_EXAMPLES = """\b
Examples:
  kb search "where is the order total computed"
  kb search getUserById --kind symbol --path src
  kb search '"must not be empty"' --explain
"""
_SHARE = click.FloatRange(0, 1)


@click.command("search", epilog=_EXAMPLES)
@click.argument("query", metavar="QUERY")
@repo_option
@sha_option
@click.option("-k", "--k", "k", type=click.IntRange(1, 200), default=10, show_default=True, help="Hits.")
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
@click.option("--dense-share", type=_SHARE, help="Weight of the dense leg. Default: as calibrated.")
@click.option("--diversity", type=_SHARE, help="How much likeness to better hits counts against one (MMR).")
@click.option("--per-file", type=click.IntRange(1), metavar="N", help="At most N hits of one file.")
@click.option("--twins", is_flag=True, help="A definition's symbol and its source are hits of their own.")
@click.option("--expand", is_flag=True, help="Also what is one edge away: importers, models, tests...")
@click.option("--token-budget", type=click.IntRange(1), metavar="N", help="Stop before the texts exceed it.")
@click.option("--provider", metavar="NAME", help="Ask with this provider's model. Default: the snapshot's.")
@click.option("--model", metavar="NAME|FOLDER", help="Ask with this model. Default: the snapshot's.")
@click.option("--explain", is_flag=True, help="Show the parts of each score, term by term.")
@click.option("--source", is_flag=True, help="Print the very lines at that commit under each place.")
@db_url_option
@json_option
def command(
    *,
    query: str,
    repo: str | None,
    sha: str | None,
    token_budget: int | None,
    provider: str | None,
    model: str | None,
    source: bool,
    db_url: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Search a snapshot by words, names and meaning.

    A query that is one quoted phrase must occur as it stands. Without vectors (kb embed) the search is lexical,
    and says so.
    """
    from kb.bootstrap import embedding_endpoint, open_app
    from kb.config import load_settings
    from kb.retrieve.search import EmbeddingChoice, search

    options = _options(given)
    endpoint = embedding_endpoint()
    with open_app(load_settings(db_url=db_url)) as app:
        result = search(
            app,
            query,
            options,
            repo=repo,
            sha=sha,
            token_budget=token_budget,
            source=source,
            embedding=EmbeddingChoice(provider, model, endpoint.url, endpoint.key),
        )
    if as_json:
        print_document("search", result)
    else:
        print_lines(search_lines(result, explain=options.explain))


def _options(given: dict[str, Any]) -> SearchOptions:
    from kb.retrieve.search_request import SearchOptions

    return SearchOptions(**{**given, "kinds": tuple(given["kinds"])})
