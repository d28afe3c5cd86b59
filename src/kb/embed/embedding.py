"""Embeds snapshots: idempotent, resumable, in batches; a text that has its vector is never embedded again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kb.providers import EmbeddingProvider
from kb.store import locks
from kb.store.catalog import SnapshotRow
from kb.store.database import Connection
from kb.store.parts import Parts
from kb.store.search import index, vectors
from kb.store.search.vectors import ModelRow

Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True)
class EmbedReport:
    """What one run of `kb embed` did."""

    model: str
    dimensions: int
    snapshots: int
    embedded: int
    """Texts that got their vector now."""
    seconds: float
    """Spent on embedding and storing them."""
    indexed: bool
    """The model's vectors are searched through HNSW; below 20,000 of them every one is looked at."""

    @property
    def rate(self) -> float:
        """Texts a second; 0 where there was nothing to do."""
        return self.embedded / self.seconds if self.embedded and self.seconds else 0.0


def embed_snapshots(
    parts: Parts,
    snapshots: Sequence[SnapshotRow],
    provider: EmbeddingProvider,
    locator: str | None,
    progress: Progress,
) -> EmbedReport:
    """Gives every text of the snapshots its vector of the provider's model, and says so in the database.

    Each batch is stored before the next one is embedded: a run that was killed goes on where it was.
    `locator` is what the provider opens its model by, for searches later on.

    Raises:
        UsageError: the model was known with another number of dimensions.
        KbError: whatever the provider raises; the batches before are kept.
    """
    with parts.database.writer() as connection:
        connection.autocommit = True  # every transaction is explicit
        with locks.writing(connection):
            for lineage_id in sorted({snapshot.lineage_id for snapshot in snapshots}):
                index.catch_up(connection, lineage_id)
            model = vectors.put_model(connection, provider.model_id, provider.dimensions, locator)
            started = time.monotonic()
            embedded = sum(_embed(connection, one, model, provider, progress) for one in snapshots)
            seconds = time.monotonic() - started
            indexed = vectors.ensure_index(connection, model)
    return EmbedReport(model.model_id, model.dimensions, len(snapshots), embedded, seconds, indexed)


def _embed(
    connection: Connection,
    snapshot: SnapshotRow,
    model: ModelRow,
    provider: EmbeddingProvider,
    progress: Progress,
) -> int:
    """Embeds what one snapshot lacks; how many texts."""
    place = (snapshot.lineage_id, snapshot.ordinal)
    total = vectors.count_missing(connection, *place, model)
    done = 0
    progress("embed", 0, total)
    for batch in vectors.missing_texts(connection, *place, model, provider.batch_size):
        made = provider.embed_documents([text for _, text in batch])
        vectors.put_vectors(connection, model, [text_pk for text_pk, _ in batch], made)
        done += len(batch)
        progress("embed", done, total)
    vectors.mark_embedded(connection, snapshot.snapshot_id, model)
    return done
