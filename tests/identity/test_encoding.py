from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.errors import GroundingError, IntegrityError
from kb.identity.artifacts import canonical_json, seal_draft
from kb.identity.encoding import encode_fields
from kb.identity.spans import NORMALIZATION_VERSION, span_id, span_ids
from kb.model.artifacts import ArtifactDraft, Grounding, Link

FINGERPRINT = hashlib.sha256(b"x").digest()


def _by_hand(*fields: bytes) -> bytes:
    """The encoding as docs/identity.md words it, written a second time."""
    hashed = hashlib.sha256()
    for field in fields:
        hashed.update(len(field).to_bytes(8, "big"))
        hashed.update(field)
    return hashed.digest()


def test_a_span_id_hashes_version_language_kind_path_and_fingerprint_with_their_lengths():
    expected = _by_hand(
        str(NORMALIZATION_VERSION).encode(), b"python", b"method", "Order.größe".encode(), FINGERPRINT
    )
    assert span_id("python", "method", "Order.größe", FINGERPRINT) == expected


@given(st.text(max_size=9), st.text(max_size=9), st.text(max_size=9))
def test_ids_made_in_bulk_are_the_ids_made_one_by_one(language, kind, path):
    assert span_ids(language)(kind, path, FINGERPRINT) == span_id(language, kind, path, FINGERPRINT)


@given(st.lists(st.binary(max_size=12), max_size=5), st.lists(st.binary(max_size=12), max_size=5))
def test_two_lists_of_fields_encode_alike_only_if_they_are_alike(one, other):
    assert (encode_fields(one) == encode_fields(other)) == (one == other)


@pytest.mark.parametrize(
    "moved",
    [
        ("pythonm", "ethod", "A.b"),
        ("python", "methodA", ".b"),
        ("python", "method", "A.b\0"),
        ("", "pythonmethod", "A.b"),
    ],
)
def test_text_that_moves_from_one_field_into_the_next_gives_another_id(moved):
    assert span_id(*moved, FINGERPRINT) != span_id("python", "method", "A.b", FINGERPRINT)


def _draft(*groundings: Grounding, **changes) -> ArtifactDraft:
    fields = {"kind": "symbol", "logical_key": "symbol:a", "title": "a", "body": {}, "text": "a", **changes}
    return ArtifactDraft(groundings=groundings, **fields)


def test_an_artifact_without_a_span_is_refused():
    with pytest.raises(GroundingError, match="stands on no span"):
        seal_draft(_draft(), "symbols", 1)


def test_an_artifact_is_the_same_wherever_its_spans_stand():
    here = _draft(Grounding("a.py", FINGERPRINT, 0, "definition"))
    there = _draft(
        Grounding("b/c.py", FINGERPRINT, 7, "definition"), Grounding("d.py", FINGERPRINT, 0, "definition")
    )
    assert seal_draft(here, "symbols", 1).artifact_id == seal_draft(there, "symbols", 1).artifact_id


@pytest.mark.parametrize(
    "changes",
    [{"kind": "api"}, {"logical_key": "symbol:b"}, {"title": "b"}, {"body": {"a": 1}}, {"text": "b"},
     {"confidence": 99}, {"links": (Link("calls", "symbol:c"),)}],
)  # fmt: skip
def test_every_field_of_a_draft_is_part_of_its_id(changes):
    grounding = Grounding("a.py", FINGERPRINT, 0, "definition")
    ids = {seal_draft(_draft(grounding, **fields), "symbols", 1).artifact_id for fields in ({}, changes)}
    assert len(ids) == 2


def test_a_role_an_extractor_and_its_version_are_part_of_the_id():
    grounding = Grounding("a.py", FINGERPRINT, 0, "definition")
    draft, other = _draft(grounding), _draft(grounding._replace(role="handler"))
    sealed = [seal_draft(draft, "s", 1), seal_draft(other, "s", 1), seal_draft(draft, "t", 1), seal_draft(draft, "s", 2),
              seal_draft(draft, "s", 1, prompt_version="", model_id=""), seal_draft(draft, "s", 1, model_id="m")]  # fmt: skip
    assert len({artifact.artifact_id for artifact in sealed}) == len(sealed)


@pytest.mark.parametrize("body", [{"a": 1.5}, {"a": [float("nan")]}, {"a": {1: 2}}, {"a": {1, 2}}])
def test_a_body_that_does_not_round_trip_is_refused(body):
    with pytest.raises(IntegrityError):
        canonical_json(body)
