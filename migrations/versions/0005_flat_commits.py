"""Indexes for what every commit asks, so that its cost does not grow with the repository.

Who closed which files lately (facts that no tip needs), the keys of one parse's facts, files that are gaps.
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE INDEX fact_key_parse_idx ON fact_key (parse_id)")
    op.execute(
        """CREATE INDEX snapshot_file_to_idx ON snapshot_file (lineage_id, to_ord)
           WHERE to_ord < 2147483647"""
    )
    op.execute("CREATE INDEX snapshot_file_gap_idx ON snapshot_file (lineage_id) WHERE status = 'gap'")


def downgrade() -> None:
    op.execute("DROP INDEX fact_key_parse_idx, snapshot_file_to_idx, snapshot_file_gap_idx")
