"""The public retrieval sets beside the project, and what to say where they are absent."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("KB_SHARED", ROOT.parent / "shared"))
ABSENT = f"the folder {SHARED.name}/data is absent beside the project: its retrieval sets cannot be measured"


class TextSet(NamedTuple):
    name: str
    source: str
    """Kind of source, as fusion is calibrated by: `document`, `chat`, `code`."""
    documents: dict[str, tuple[str, str]]
    """Id to title and text; the text begins with the title."""
    queries: dict[str, str]
    relevant: dict[str, dict[str, int]]


_SOURCES = {"hotpotqa100": "document", "lihua-world": "chat"}


def text_set(name: str) -> TextSet:
    folder = SHARED / "data" / "text" / name
    documents = {}
    for row in _rows(folder / "corpus.jsonl"):
        title, text = row["title"], row["text"]
        documents[row["_id"]] = (title, f"{title}\n{text}" if title else text)
    relevant: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        relevant.setdefault(query, {})[document] = int(grade)
    queries = {row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl")}
    return TextSet(name, _SOURCES.get(name, "document"), documents, queries, relevant)


def text_sets() -> list[str]:
    folder = SHARED / "data" / "text"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _rows(path: Path):
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
