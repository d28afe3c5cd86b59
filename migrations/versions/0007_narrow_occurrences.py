"""Occurrences name parse and span in four bytes each: they are what a history adds most of.

Keys are handed out from 1; two thousand million parses or spans are far beyond what one database holds.
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "ALTER TABLE span_occurrence ALTER COLUMN parse_id TYPE integer, ALTER COLUMN span_pk TYPE integer"
    )


def downgrade() -> None:
    op.execute(
        "ALTER TABLE span_occurrence ALTER COLUMN parse_id TYPE bigint, ALTER COLUMN span_pk TYPE bigint"
    )
