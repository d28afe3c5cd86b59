"""`kb embed`: give the texts of a snapshot their vectors."""

from __future__ import annotations

import click

from kb.cli.options import db_url_option, json_option, repo_option, sha_option
from kb.cli.output import print_document, print_lines
from kb.cli.render.search import embed_lines

_EXAMPLES = """\b
Examples:
  kb embed
  kb embed --provider onnx --model ~/models/all-MiniLM-L6-v2
  KB_EMBED_URL=http://localhost:11434/v1 kb embed --provider openai --model nomic-embed-text
"""


@click.command("embed", epilog=_EXAMPLES)
@repo_option
@sha_option
@click.option("--all", "everything", is_flag=True, help="Every snapshot of the repository.")
@click.option(
    "--provider",
    metavar="NAME",
    help="static, onnx, sentence-transformers or openai. Default: KB_EMBED_PROVIDER, else static.",
)
@click.option(
    "--model",
    metavar="NAME|FOLDER",
    help="The provider's model. Default: KB_EMBED_MODEL, else its own default.",
)
@db_url_option
@json_option
def command(
    *,
    repo: str | None,
    sha: str | None,
    everything: bool,
    provider: str | None,
    model: str | None,
    db_url: str | None,
    as_json: bool,
) -> None:
    """Embed the texts of a snapshot for dense search.

    A text that has its vector is never embedded again, and a run that was stopped goes on where it was.
    Several models can live side by side; a search uses the one that its snapshot was embedded with last.
    """
    from pathlib import Path

    from kb.bootstrap import embedding_endpoint, open_app
    from kb.cli.progress import TerminalProgress
    from kb.config import load_settings
    from kb.embed.embedding import embed_snapshots
    from kb.errors import UsageError
    from kb.providers import open_provider
    from kb.retrieve.select import select_snapshots

    if everything and sha is not None:
        raise UsageError("--all and --sha exclude each other")
    settings = load_settings(
        db_url=db_url, embed_provider=provider, embed_model=None if provider and not model else model
    )
    locator = model if provider else settings.embed_model
    if locator is not None and Path(locator).expanduser().is_dir():
        locator = str(Path(locator).expanduser().resolve())
    endpoint = embedding_endpoint()
    with open_app(settings) as app, TerminalProgress() as progress:
        snapshots = select_snapshots(app, repo, sha, everything=everything)
        chosen = open_provider(settings.embed_provider, locator, url=endpoint.url, key=endpoint.key)
        report = embed_snapshots(app, snapshots, chosen, locator, progress)
    if as_json:
        print_document("embed", report)
    else:
        print_lines(embed_lines(report))
