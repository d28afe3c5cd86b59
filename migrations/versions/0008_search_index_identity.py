"""A search index has an identity: one that is made anew numbers its documents anew, and what was kept of the old
one must not be used with it.
"""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE search_index ADD COLUMN index_id bigint NOT NULL GENERATED ALWAYS AS IDENTITY")


def downgrade() -> None:
    op.execute("ALTER TABLE search_index DROP COLUMN index_id")
