"""`onnx`: a sentence encoder as an ONNX file, from a folder or a hub id. No torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kb.errors import NotFoundError, UsageError
from kb.providers.api import Vectors, unit
from kb.providers.content import with_content
from kb.providers.prefixes import prefixes_for

_FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
_DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_TOKENIZER = "tokenizer.json"
_POOLING = "1_Pooling/config.json"
_LENGTH = "sentence_bert_config.json"
_LONGEST = 256
"""Tokens, where the export does not say."""


class OnnxProvider:
    """Runs an exported sentence encoder on the CPU; pools itself where the export does not."""

    batch_size = 64

    def __init__(self, folder: Path, name: str) -> None:
        import onnxruntime  # noqa: PLC0415 - an extra
        from tokenizers import Tokenizer  # noqa: PLC0415 - an extra

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        # Threads that wait by spinning take the cores from the database beside them.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session: Any = onnxruntime.InferenceSession(
            str(_model_file(folder)), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = {one.name for one in self._session.get_inputs()}
        self._output, self._pooled = _choose_output(self._session.get_outputs())
        self._by_first_token = bool(_read_json(folder / _POOLING).get("pooling_mode_cls_token"))
        self._tokenizer: Any = Tokenizer.from_file(str(folder / _TOKENIZER))
        longest = _read_json(folder / _LENGTH).get("max_seq_length", _LONGEST)
        self._tokenizer.enable_truncation(longest)
        self._tokenizer.no_padding()
        self._prefixes = prefixes_for(name)
        self.model_id = f"onnx:{with_content(name, folder, _read_files(folder))}"
        self.dimensions = int(self._run([""]).shape[1])

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of the texts; see `EmbeddingProvider`."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        # Texts of like length share a batch: little is computed for padding.
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(order), self.batch_size):
            places = order[start : start + self.batch_size]
            vectors[places] = self._run([self._prefixes.document + texts[at] for at in places])
        return unit(vectors)

    def embed_query(self, text: str) -> Vectors:
        """The question with the model's prefix."""
        vector: Vectors = unit(self._run([self._prefixes.query + text]))[0]
        return vector

    def _run(self, texts: list[str]) -> Vectors:
        encoded = self._tokenizer.encode_batch(texts)
        width = max(len(one.ids) for one in encoded)
        ids = np.zeros((len(texts), width), dtype=np.int64)
        mask = np.zeros((len(texts), width), dtype=np.int64)
        for row, one in enumerate(encoded):
            ids[row, : len(one.ids)] = one.ids
            mask[row, : len(one.ids)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (output,) = self._session.run(
            [self._output], {name: value for name, value in feed.items() if name in self._inputs}
        )
        if self._pooled:
            pooled: Vectors = output
        elif self._by_first_token:
            pooled = output[:, 0]
        else:
            weights = mask[:, :, None].astype(np.float32)
            pooled = (output * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
        return pooled.astype(np.float32)


def _choose_output(outputs: Sequence[Any]) -> tuple[str, bool]:
    """The output to read, and whether it is one vector for each text already."""
    for one in outputs:
        if len(one.shape) == 2:
            return str(one.name), True
    return str(outputs[0].name), False


def _model_file(folder: Path) -> Path:
    for name in _FILES:
        if (folder / name).is_file():
            return folder / name
    raise NotFoundError(f"{folder} holds no ONNX model", hint=f"it has one of the names {', '.join(_FILES)}")


def _read_files(folder: Path) -> list[Path]:
    """The files that the vectors depend on: the graph with weights beside it, the tokenizer, what is said of both."""
    graph = _model_file(folder)
    weights = (graph.with_name(graph.name + ending) for ending in ("_data", ".data"))
    others = (folder / name for name in (_TOKENIZER, _POOLING, _LENGTH))
    return [graph, *(path for path in (*weights, *others) if path.is_file())]


def _read_json(path: Path) -> dict[str, Any]:
    loaded = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return loaded if isinstance(loaded, dict) else {}


def open_onnx(model: str | None) -> OnnxProvider:
    """The provider for a folder, or for a model of the hub that is downloaded once.

    Raises:
        UsageError: onnxruntime is not installed, or the hub has no such model.
        NotFoundError: the folder holds no model.
    """
    name = model or _DEFAULT_MODEL
    folder = Path(name).expanduser()
    try:
        if folder.is_dir():
            return OnnxProvider(folder.resolve(), folder.resolve().name)
        if folder.is_absolute() or name.startswith("."):
            raise NotFoundError(
                f"there is no folder {name}", hint="name a folder with model.onnx and tokenizer.json"
            )
        return OnnxProvider(_download(name), name)
    except ImportError as error:
        raise UsageError(
            f"the provider onnx needs {error.name}", hint="install the extra: pip install 'kb[onnx]'"
        ) from error


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - comes with tokenizers
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError  # noqa: PLC0415

    patterns = [*_FILES, "tokenizer.json", "*config.json", "1_Pooling/config.json"]
    try:
        return Path(snapshot_download(name, allow_patterns=patterns))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise UsageError(
            f"the model {name} cannot be had from the hub", hint="name a local folder with --model instead"
        ) from error
