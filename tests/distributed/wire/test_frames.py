"""Messages: what comes out is what went in, and anything else is a FrameError."""

from __future__ import annotations

import json
import struct
import tracemalloc
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given

from paddlelike.distributed.wire import CHUNK, MAX_HEADER, WHOLE, Into, Part, make_parts
from paddlelike.distributed.wire.frames import Intake, messages, split
from paddlelike.errors import FrameError

END = struct.pack("<IQ", 0, 0)


def head(text: bytes | str) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<I", len(data)) + data


def body(*records: tuple[int, int, bytes], count: int | None = None) -> bytes:
    table = b"".join(struct.pack("<IQI", index, offset, len(data)) for index, offset, data in records)
    number = struct.pack("<I", len(records) if count is None else count)
    return number + table + b"".join(data for _, _, data in records)


def read(frames: list[bytes], arrays: dict[int, Any]) -> dict[str, Any]:
    """A call's messages, read by the module under test."""
    header, rest = split(frames[0])
    into = Into(arrays)
    intake = Intake(into)
    for message in [rest] if rest else frames[1:]:
        intake.take(message)
    if not rest:
        intake.finish()
    into.check()
    return header


def read_by_the_specification(frames: list[bytes]) -> tuple[Any, dict[int, bytes]]:
    """The same, written down from the format's description alone."""
    (length,) = struct.unpack_from("<I", frames[0])
    header, rest = json.loads(frames[0][4 : 4 + length]), frames[0][4 + length :]
    bodies, arrays, total = ([rest] if rest else frames[1:]), dict[int, bytes](), 0
    for message in bodies:
        (count,) = struct.unpack_from("<I", message)
        at = 4 + 16 * count
        for number in range(count):
            index, offset, size = struct.unpack_from("<IQI", message, 4 + 16 * number)
            assert len(arrays.get(index, b"")) == offset
            arrays[index] = arrays.get(index, b"") + message[at : at + size]
            at += size
            total += size
        if not count:
            assert message == struct.pack("<IQ", 0, total)
    assert bool(rest) or bodies[-1] == struct.pack("<IQ", 0, total)
    return header, arrays


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
headers = st.dictionaries(st.text(max_size=8), plain, max_size=4)
sizes = st.sampled_from([0, 1, 7, 4096, CHUNK - 1, CHUNK, CHUNK + 1, WHOLE, WHOLE + 1, 5 * CHUNK + 3])


@given(headers, st.lists(sizes, max_size=4))
@example({}, [])
@example({"a": 1}, [WHOLE, 1])
def test_a_decoded_call_equals_the_encoded_call(header: dict[str, Any], lengths: list[int]) -> None:
    sent = {
        3 * n: np.random.default_rng(n).integers(0, 256, size, np.uint8) for n, size in enumerate(lengths)
    }
    frames = list(messages(header, make_parts(sent)))
    received = {index: np.zeros_like(array) for index, array in sent.items()}
    assert read(frames, received) == header
    for index, array in sent.items():
        np.testing.assert_array_equal(received[index], array)
    by_hand, arrays = read_by_the_specification(frames)
    assert by_hand == header
    assert arrays == {index: array.tobytes() for index, array in sent.items() if len(array)}
    assert (len(frames) == 1) == (sum(lengths) <= WHOLE)


def test_no_message_holds_more_than_its_limit() -> None:
    many = [
        Part(0, 0, memoryview(bytes(3 * CHUNK))),
        *(Part(n, 0, memoryview(b"x")) for n in range(1, 40_000)),
    ]
    frames = list(messages({}, many))
    assert len(frames) > 5
    assert max(map(len, frames)) <= CHUNK + (1 << 14) * 16 + 4


def test_a_message_has_the_documented_bytes() -> None:
    frames = list(messages({"v": 1}, [Part(2, 8, memoryview(b"abc"))]))
    expected = "07000000 7b2276223a317d 01000000 02000000 0800000000000000 03000000 616263"
    assert frames == [bytes.fromhex(expected)]


def test_a_message_without_arrays_is_a_header_and_an_end_mark() -> None:
    assert list(messages({}, ())) == [head("{}") + END]


BAD_HEADERS = [
    (b"", "too short"),
    (b"\x02\x00\x00", "too short"),
    (b"\xff\xff\xff\xff{}", "4294967295 bytes; at most 65536 are allowed"),
    (struct.pack("<I", MAX_HEADER + 1) + b" " * (MAX_HEADER + 1), "at most 65536 are allowed"),
    (b"\x03\x00\x00\x00{}", "the header of 3 bytes reaches beyond its message of 6"),
    (head(""), "not JSON"),
    (head("["), "not JSON"),
    (head("{} {}"), "not JSON"),
    (head("[1]"), "a list instead of an object"),
    (head("7"), "an? int instead of an object"),
    (head("null"), "instead of an object"),
    (head(b'{"a":"\xff"}'), "not JSON"),
    (head('{"a":1,"a":2}'), "same key twice"),
    (head('{"a":{"b":1,"b":1}}'), "same key twice"),
    (head('{"a":NaN}'), "NaN"),
    (head('{"a":-Infinity}'), "-Infinity"),
    (head('{"a":1e999}'), "not finite"),
    (head('{"a":18446744073709551616}'), "64 bits"),
    (head('{"a":-9223372036854775809}'), "64 bits"),
    (head('{"a":' + "9" * 60_000 + "}"), "64 bits"),
    (head('{"a":' + "[" * 30_000 + "]" * 30_000 + "}"), "nested|recursion"),
    (head('{"a":' * 10_000 + "1" + "}" * 10_000), "nested|recursion"),
    (head('{"a":' + "[" * 17 + "]" * 17 + "}"), "nested"),
    (head('{"a":"\\ud800"}'), "not JSON"),
]


@pytest.mark.parametrize(("message", "text"), BAD_HEADERS, ids=[text for _, text in BAD_HEADERS])
def test_a_bad_header_is_a_frame_error(message: bytes, text: str) -> None:
    with pytest.raises(FrameError, match=text):
        split(message)


def test_a_header_with_many_keys_does_not_count_as_deeply_nested() -> None:
    header = {"sizes": [[n] for n in range(2000)]}
    assert split(next(messages(header, ())))[0] == header


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ({"a": float("nan")}, "not plain JSON"),
        ({"a": np.float32(1)}, "not plain JSON"),
        ({"a": b"x"}, "not plain JSON"),
        ({"a": "x" * MAX_HEADER}, "at most 65536 are allowed"),
    ],
    ids=["nan", "numpy", "bytes", "long"],
)
def test_a_header_that_the_other_side_would_refuse_is_not_sent(header: dict[str, Any], text: str) -> None:
    with pytest.raises(FrameError, match=text):
        next(messages(header, ()))


BAD_BODIES = [
    (b"", "too short"),
    (b"\x01\x00\x00", "too short"),
    (body((0, 0, b"abcd"))[:-1], "records have 4 bytes in all, but 3 bytes follow"),
    (body((0, 0, b"abcd")) + b"x", "records have 4 bytes in all, but 5 bytes follow"),
    (body((0, 0, b"abcd"), count=2), "records"),
    (body((0, 0, b"abcd"), count=0xFFFFFFFF), "4294967295 records"),
    (body((0, 0, b"abcd"), count=1 << 14), "16384 records"),
    (body(*[(0, 0, b"")] * ((1 << 14) + 1)), "16385 records"),
    (body((7, 0, b"abcd")), "array 7 is not part"),
    (body((0, 1, b"abcd")), "at 1 of array 0"),
    (body((0, (1 << 64) - 1, b"abcd")), "at 18446744073709551615"),
    (body((0, 0, b"abcdefghi")), "9 bytes at 0 of array 0, which holds 8"),
    (body((0, 0, b"abcd"), (0, 0, b"abcd")), "4 bytes at 0 of array 0"),
    (body((0, 0, b"abcd"), (0, 6, b"cd")), "at 6 of array 0"),
    (struct.pack("<I", 1) + struct.pack("<IQI", 0, 0, 0xFFFFFFFF) + b"abcd", "4294967295 bytes in all"),
    (struct.pack("<IQ", 0, 9), "9 bytes were sent, 0 arrived"),
    (struct.pack("<I", 0), "the end frame has 4 bytes"),
    (struct.pack("<IQ", 0, 0) + b"x", "the end frame has 13 bytes"),
]


@pytest.mark.parametrize(("message", "text"), BAD_BODIES, ids=[text for _, text in BAD_BODIES])
def test_a_bad_body_is_a_frame_error(message: bytes, text: str) -> None:
    array = np.full(8, 9, np.uint8)
    with pytest.raises(FrameError, match=text):
        Intake(Into({0: array})).take(message)
    assert (array[4:] == 9).all()  # a record is checked before it is copied


def test_records_for_a_call_that_takes_none_are_a_frame_error() -> None:
    with pytest.raises(FrameError, match="takes none"):
        Intake(None).take(body((0, 0, b"a")))


def test_bytes_after_the_end_of_a_message_are_refused() -> None:
    intake = Intake(None)
    intake.take(END)
    with pytest.raises(FrameError, match="after the end"):
        intake.take(END)


def test_a_stream_that_breaks_off_is_a_frame_error() -> None:
    intake = Intake(Into({0: np.zeros(8, np.uint8)}))
    intake.take(body((0, 0, b"abcd")))
    with pytest.raises(FrameError, match="broke off after 4 bytes"):
        intake.finish()


@pytest.mark.parametrize("filled", [0, 5], ids=["absent", "half"])
def test_an_incomplete_array_is_a_frame_error(filled: int) -> None:
    into = Into({3: np.zeros(8, np.uint8)})
    into.place(3, 0, filled)
    with pytest.raises(FrameError, match=f"array 3 is incomplete: {filled} of 8 bytes arrived"):
        into.check()


def test_a_buffer_of_the_wrong_length_is_refused() -> None:
    class Short:
        def place(self, index: int, offset: int, length: int) -> memoryview:
            return memoryview(bytearray(length - 1))

    with pytest.raises(FrameError, match="its memory has 3"):
        Intake(Short()).take(body((0, 0, b"abcd")))


VALID = next(
    messages({"tid": 1, "sizes": [4, 8]}, make_parts({0: np.arange(4, dtype=np.uint8), 1: np.arange(8.0)}))
)


@st.composite
def damaged_messages(draw: st.DrawFn) -> bytes:
    """A valid message after some cuts, flips, insertions and repetitions."""
    data = bytearray(VALID)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["flip", "cut", "insert", "repeat", "number"])):
            case "flip" if at < len(data):
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del data[at : at + draw(st.integers(1, 20))]
            case "insert":
                data[at:at] = draw(st.binary(max_size=20))
            case "repeat":
                data[at:at] = data[at : at + 20]
            case "number":
                data[at : at + 4] = struct.pack("<I", draw(st.sampled_from([0, 1, 0x7FFFFFFF, 0xFFFFFFFF])))
    return bytes(data)


@given(
    damaged_messages() | st.binary(max_size=200) | st.binary(max_size=60).map(lambda data: head(b"{}") + data)
)
def test_damaged_messages_only_raise_frame_errors(message: bytes) -> None:
    arrays = {0: np.zeros(4, np.uint8), 1: np.zeros(8)}
    tracemalloc.start()
    try:
        header = read([message], arrays)
    except FrameError:
        pass
    else:
        assert isinstance(header, dict)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 200_000  # whatever lengths the message claims
