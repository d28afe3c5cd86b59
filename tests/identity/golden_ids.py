"""Prints the ids of hand-made sources and drafts as JSON; needs only kb.structure and kb.identity.

Run by test_goldens.py on every Python at hand. To regenerate after a deliberate change of identity
(bump NORMALIZATION_VERSION first, see docs/identity.md):

    python tests/identity/golden_ids.py > tests/identity/golden_ids.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from kb.identity.artifacts import seal_draft
from kb.model.artifacts import ArtifactDraft, Grounding, Link
from kb.structure.reader import read_blob

SOURCES = Path(__file__).parents[1] / "fixtures" / "golden_sources"


def span_ids(source: bytes, dialect: str) -> list[list[object]]:
    """Kind, symbol path, n and id of every span, in source order."""
    blob = read_blob("golden", source, dialect, ())
    return [
        [item.span.kind, item.span.symbol_path, item.n, item.span.span_id.hex()] for item in blob.occurrences
    ]


def artifact_ids() -> dict[str, str]:
    """Ids of drafts that use every field."""
    one, two = bytes(range(32)), bytes(range(32, 64))
    plain = ArtifactDraft("symbol", "symbol:a.b", "b", {}, "b", (Grounding("a.py", one, 0, "definition"),))
    rich = ArtifactDraft(
        "api",
        "api:GET /größe/{id}",
        "GET /größe",
        {"b": [1, True, None, "é\n"], "a": {"z": "", "y": -3}},
        "text\nwith lines",
        (Grounding("a.py", two, 3, "model"), Grounding("b.py", one, 0, "handler")),
        (Link("calls", "symbol:a.c"), Link("uses", "symbol:a.d")),
        confidence=80,
    )
    return {
        "plain": seal_draft(plain, "symbols", 1).artifact_id.hex(),
        "rich": seal_draft(rich, "api", 2).artifact_id.hex(),
        "told by a model": seal_draft(rich, "rules", 1, prompt_version="3", model_id="m").artifact_id.hex(),
    }


def main() -> None:
    spans = {
        path.name: span_ids(path.read_bytes(), "python-stub" if path.suffix == ".pyi" else "python")
        for path in sorted(SOURCES.iterdir())
        if path.suffix in {".py", ".pyi"}
    }
    json.dump({"spans": spans, "artifacts": artifact_ids()}, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
