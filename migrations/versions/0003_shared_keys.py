"""An index of the logical keys that several files claim: who claims one is asked with every commit.

Such keys hold `~~` (docs/decisions/0002-keys-that-files-share.md); there are few, so it stays small.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE INDEX artifact_shared_key_idx ON artifact (logical_key) WHERE strpos(logical_key, '~~') > 0"
    )


def downgrade() -> None:
    op.execute("DROP INDEX artifact_shared_key_idx")
