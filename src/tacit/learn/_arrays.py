"""Arrays of learning as JSON documents: type, shape, and the bytes in base64; nothing that runs when read."""

from __future__ import annotations

import base64
import binascii
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.core import JSON

_TYPES = frozenset({"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"})


def to_document(array: Any) -> dict[str, JSON]:
    """Write an array of numbers as a JSON document: little-endian bytes, with their type and shape.

    Examples
    --------
    >>> to_document(np.array([[1.0, 2.0]], dtype=np.float32))
    {'type': 'f4', 'shape': [1, 2], 'bytes': 'AACAPwAAAEA='}
    """
    stored = np.asarray(array)
    name = f"{stored.dtype.kind}{stored.dtype.itemsize}"
    if name not in _TYPES:
        raise TypeError(f"an array of {stored.dtype} has no document")
    little = np.ascontiguousarray(stored, dtype=stored.dtype.newbyteorder("<"))
    return {"type": name, "shape": list(stored.shape), "bytes": base64.b64encode(little.tobytes()).decode()}


def from_document(document: Any) -> NDArray[Any]:
    """Read an array back, in the byte order of this machine; raises ``ValueError`` where it is none.

    Examples
    --------
    >>> from_document(to_document(np.arange(3))).tolist()
    [0, 1, 2]
    """
    name, shape = document["type"], document["shape"]
    if name not in _TYPES or not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("not an array")
    try:
        content = base64.b64decode(document["bytes"], validate=True)
    except (binascii.Error, TypeError):
        raise ValueError("not an array") from None
    kind = np.dtype(f"<{name}")
    if len(content) != math.prod(shape) * kind.itemsize:
        raise ValueError("not an array")
    if name == "b1" and content.strip(b"\0\1"):
        raise ValueError("not an array")
    return np.frombuffer(content, dtype=kind).reshape(shape).astype(kind.newbyteorder("="))
