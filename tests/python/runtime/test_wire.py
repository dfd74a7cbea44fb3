"""The wire format: what goes in comes out, and what nobody sent is refused."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tvm
from tvm.runtime.data_type import DataType
from tvm.runtime.workers.wire import decode, encode, pack_frame, take_frame


@dataclasses.dataclass(frozen=True)
class Note:
    number: int
    content: object


RECORDS = {"note": Note}
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    scalars | st.binary() | st.builds(DataType, st.sampled_from(["float32", "int8x4", "bool"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(scalars, inner, max_size=4)
        | st.builds(Note, st.integers(), inner)
    ),
    max_leaves=12,
)


def over_the_wire(value):
    buffer = bytearray(pack_frame(*encode(value, RECORDS)))
    tree, blob = take_frame(buffer)
    assert not buffer
    return decode(tree, blob, RECORDS)


@given(value=values)
def test_values_arrive_as_they_left(value):
    arrived = over_the_wire(value)
    assert arrived == value
    assert type(arrived) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype="float32").reshape(2, 3),
        np.zeros((0, 4), "int8"),
        np.array(True),
        np.array([1.5, -2.0], "float16"),
    ],
)
def test_arrays_arrive_with_type_and_shape(array):
    sent = tvm.nd.array(array)
    first, second = over_the_wire((sent, [sent]))
    for arrived in (first, second[0]):
        assert arrived.dtype == sent.dtype
        np.testing.assert_array_equal(arrived.numpy(), array)
    plain = over_the_wire(array)
    assert plain.dtype == array.dtype
    np.testing.assert_array_equal(plain, array)


def test_bfloat16_keeps_its_type():
    sent = tvm.nd.empty((3,), "bfloat16").copyfrom(np.array([1, 2, 3], "uint16"))
    arrived = over_the_wire(sent)
    assert str(arrived.dtype) == "bfloat16"
    np.testing.assert_array_equal(arrived.numpy(), sent.numpy())


def test_devices_arrive():
    assert over_the_wire(tvm.cuda(3)) == tvm.cuda(3)


def test_objects_of_other_classes_do_not_leave():
    with pytest.raises(TypeError, match="a set cannot travel to another process"):
        encode([{1, 2}])
    with pytest.raises(TypeError, match="a Note cannot travel"):
        encode(Note(1, None))


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ({"$": "record", "name": "os.system", "fields": ["true"]}, "unknown kind 'record'"),
        ({"$": "record", "name": "note", "fields": [1]}, "TypeError"),
        ({"$": "bytes", "size": 5}, "5 bytes are missing"),
        ({"$": "bytes", "size": -1}, "-1 bytes are missing"),
        ({"$": "tuple"}, "KeyError: 'items'"),
        ({"no": "kind"}, "unknown kind None"),
        ({"$": "array", "dtype": "float32", "shape": [2], "size": 4}, "too small"),
        ({"$": "dtype", "name": "complex"}, "cannot read"),
    ],
)
def test_what_encode_does_not_make_is_a_value_error(tree, reason):
    with pytest.raises((ValueError, TypeError), match=reason):
        decode(json.loads(json.dumps(tree)), b"1234", RECORDS)


def test_frame_is_taken_only_when_it_is_whole():
    data = pack_frame({"a": 1}, b"blob")
    buffer = bytearray()
    for byte in data[:-1]:
        buffer.append(byte)
        assert take_frame(buffer) is None
    buffer.append(data[-1])
    assert take_frame(buffer) == ({"a": 1}, b"blob")
