"""Options that several commands share, so that they read and behave alike everywhere."""

from __future__ import annotations

import click

repo_option = click.option(
    "--repo",
    metavar="NAME|PATH",
    help="The indexed repository. Default: the one that holds the current folder, else the only one.",
)
sha_option = click.option(
    "--sha",
    metavar="COMMIT-ISH",
    help="The commit to read: a branch, tag or (short) SHA. "
    "Default: HEAD's snapshot, else its nearest indexed ancestor's.",
)
db_url_option = click.option(
    "--db-url",
    metavar="URL",
    help="A PostgreSQL server with pgvector; default KB_DB_URL, else kb's own embedded server.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else."
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
