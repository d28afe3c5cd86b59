"""Names: what ends so, and what is listed, is found without reading every key of a snapshot."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Both leave out what is never asked for this way: two thirds of all artifacts.
    op.execute(
        """CREATE INDEX artifact_name_idx ON artifact (reverse(lower(right(logical_key, 200))))
           WHERE kind NOT IN ('import', 'passage', 'package_dependency')"""
    )
    op.execute(
        """CREATE INDEX artifact_listed_idx ON artifact (kind)
           WHERE kind IN ('contract', 'entity', 'event', 'cache', 'setting', 'command')"""
    )


def downgrade() -> None:
    op.execute("DROP INDEX artifact_name_idx, artifact_listed_idx")
