"""Messages as headers: there and back, and whatever else comes is refused."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, strategies as st

from paddlelike.distributed.protocol.messages import (
    REPLIES,
    REQUESTS,
    Beat,
    HelloReply,
    Push,
    Refused,
    SaveReply,
    Staged,
    Waiting,
    reply_from_header,
    request_from_header,
)
from paddlelike.errors import FormatError

VALUES = {
    "str": "x",
    "int": 7,
    "int | None": None,
    "float": 0.5,
    "bool": True,
    "tuple[int, ...]": (1, 2),
    "tuple[int, ...] | None": (0, 3),
    "tuple[tuple[int, int], ...]": ((1, 2), (3, 4)),
    "Staged | None": Staged(3, 2, 1),
    "Mapping[str, Any]": {"a": [1, 2]},
    "Mode": "async",
    "Reason": "stale",
}


def sample(cls):
    return cls(**{one.name: VALUES[one.type] for one in dataclasses.fields(cls)})


@pytest.mark.parametrize("verb", REQUESTS)
def test_a_request_survives_json(verb):
    request = sample(REQUESTS[verb])
    assert request_from_header(verb, json.loads(json.dumps(request.to_header()))) == request


@pytest.mark.parametrize("verb", REPLIES)
def test_a_reply_survives_json(verb):
    for cls in (REPLIES[verb], Waiting, Refused):
        reply = sample(cls)
        assert reply_from_header(verb, json.loads(json.dumps(reply.to_header()))) == reply


def test_every_verb_has_one_request_and_one_reply():
    assert list(REQUESTS) == list(REPLIES)


def test_fields_with_a_default_may_be_missing():
    header = sample(Push).to_header()
    del header["rows"]
    assert request_from_header("Push", header).rows == ()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"v": 2}, "protocol 2; this server speaks 1"),
        ({"trainer": -1}, "Beat.trainer: expected an integer"),
        ({"trainer": 1 << 63}, "Beat.trainer: expected an integer"),
        ({"trainer": True}, "Beat.trainer: expected an integer"),
        ({"trainer": 1.0}, "Beat.trainer: expected an integer"),
        ({"job": None}, "Beat.job: expected a string"),
        ({"job": "x" * 5000}, "Beat.job: expected a string of at most 4096"),
        ({"more": 1}, r"the unknown fields \['more'\]"),
    ],
    ids=str,
)
def test_a_wrong_field_is_named(change, text):
    header = Beat(job="", trainer=0, process=1, session=0).to_header() | change
    with pytest.raises(FormatError, match=text):
        request_from_header("Beat", header)


@pytest.mark.parametrize("verb", REQUESTS)
def test_a_missing_field_is_named(verb):
    cls = REQUESTS[verb]
    for field in dataclasses.fields(cls):
        if field.default is field.default_factory is dataclasses.MISSING:
            header = sample(cls).to_header()
            del header[field.name]
            with pytest.raises(FormatError, match=f"lacks '{field.name}'"):
                request_from_header(verb, header)


def test_an_unknown_verb_is_refused():
    with pytest.raises(FormatError, match="unknown verb 'Format'"):
        request_from_header("Format", {"v": 1})


def test_a_reply_of_another_kind_is_refused():
    with pytest.raises(FormatError, match="of kind 'maybe'"):
        reply_from_header("Push", sample(SaveReply).to_header() | {"kind": "maybe"})
    with pytest.raises(FormatError, match="of kind 'ok', expected 'waiting'"):
        Waiting.from_header(sample(SaveReply).to_header())


@pytest.mark.parametrize("staged", [[1, 2], [1, 2, "3"], 5, [1, 2, 3, 4]], ids=str)
def test_a_staged_push_is_encoded_as_three_numbers(staged):
    with pytest.raises(FormatError, match=r"HelloReply\.staged"):
        reply_from_header("Hello", sample(HelloReply).to_header() | {"staged": staged})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(REQUESTS)), st.data())
def test_any_header_is_a_request_or_a_format_error(verb, data):
    header = sample(REQUESTS[verb]).to_header()
    key = data.draw(st.sampled_from(sorted(header)) | st.text(max_size=4))
    header[key] = data.draw(JSON)
    try:
        request = request_from_header(verb, header)
    except FormatError:
        return
    again = request_from_header(verb, json.loads(json.dumps(request.to_header())))
    assert again == request


@given(st.sampled_from(sorted(REPLIES)), st.dictionaries(st.text(max_size=8), JSON, max_size=6))
def test_any_object_is_a_reply_or_a_format_error(verb, header):
    with pytest.raises(FormatError):
        reply_from_header(verb, header | {"incarnation": 5})
