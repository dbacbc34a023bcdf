"""Arrays survive a JSON document bit by bit, and whatever is no array is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tacit.learn._arrays import from_document, to_document


@pytest.mark.parametrize("kind", ["?", "i1", "<i2", ">i4", "i8", "u1", "f2", "<f4", ">f8"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
def test_an_array_comes_back_bit_by_bit(kind, shape):
    array = (np.arange(int(np.prod(shape)), dtype=np.int64) % 100).reshape(shape).astype(kind)
    read = from_document(json.loads(json.dumps(to_document(array))))
    assert read.dtype == array.dtype.newbyteorder("=")
    assert read.shape == array.shape
    assert np.array_equal(read, array)
    assert read.flags.writeable


def test_numbers_that_are_not_finite_and_slices_come_back():
    array = np.array([np.nan, np.inf, -0.0, 1e-310, 2.0])[::2]
    assert from_document(to_document(array)).tobytes() == array.tobytes()


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([None]), np.array([1j])])
def test_other_types_have_no_document(array):
    with pytest.raises(TypeError):
        to_document(array)


@pytest.mark.parametrize(
    "change",
    [
        {"type": "O8"}, {"type": "f16"}, {"shape": [3]}, {"shape": [-2]}, {"shape": 2}, {"shape": [True]},
        {"bytes": "!!!!"}, {"bytes": 7}, {"bytes": "AAAA"}, {"type": "b1", "shape": [16]},
    ],
)  # fmt: skip
def test_what_is_no_array_is_refused(change):
    document = {**to_document(np.array([1.5, 2.5])), **change}
    with pytest.raises(ValueError, match="not an array"):
        from_document(document)
