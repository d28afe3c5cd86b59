"""Postings as bytes: a block of them is sent as it stands, and summed by whoever asked.

What is indexed is derived from artifacts, so what was packed the other way is thrown away; the next
index run or search makes it anew. Vectors stay.
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

EMPTY = """
TRUNCATE search_snapshot, search_member, search_frequency, search_document, search_block, search_index;
"""

BYTES = """
ALTER TABLE search_block DROP CONSTRAINT search_block_size, DROP COLUMN postings;
ALTER TABLE search_block ADD COLUMN postings bytea NOT NULL,
    ADD CONSTRAINT search_block_size
        CHECK (size BETWEEN 1 AND 1000 AND impact BETWEEN 1 AND 255 AND octet_length(postings) = 4 * size);
ALTER TABLE search_block ALTER COLUMN postings SET STORAGE PLAIN;
COMMENT ON COLUMN search_block.postings IS 'document number * 256 + impact (1..255), 4 bytes each, high byte first';
"""

INTEGERS = """
ALTER TABLE search_block DROP CONSTRAINT search_block_size, DROP COLUMN postings;
ALTER TABLE search_block ADD COLUMN postings integer[] NOT NULL,
    ADD CONSTRAINT search_block_size CHECK (size BETWEEN 1 AND 440 AND impact BETWEEN 1 AND 255);
ALTER TABLE search_block ALTER COLUMN postings SET STORAGE PLAIN;
COMMENT ON COLUMN search_block.postings IS 'document number * 256 + impact (1..255)';
"""


def upgrade() -> None:
    op.execute(EMPTY)
    op.execute(BYTES)


def downgrade() -> None:
    op.execute(EMPTY)
    op.execute(INTEGERS)
