"""Messages between a coordinator and hospitals: one line of JSON and arrays of numbers, as bytes.

Nothing in a message runs when it is read. A reader checks the length of every part before it uses it.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tacit.core import JSON

_MAGIC = b"tacit/federated/1\n"
_LENGTH = struct.Struct("<I")
_TYPES = frozenset({"f8", "i8", "u8"})
MAX_BYTES = 2**30  # no message is longer
_MAX_HEAD = 2**20
_MAX_ARRAYS = 8


@dataclass(frozen=True, slots=True)
class Message:
    """What a coordinator or a hospital says.

    Parameters
    ----------
    kind
        ``begin``, ``round``, ``members`` or ``certificate`` to a hospital; ``begun``, ``sum``, ``ready``,
        ``masked``, ``certificate`` or ``refusal`` from one.
    study
        The digest of the study that it belongs to.
    fields
        What else it says, as JSON.
    arrays
        Arrays of 64-bit numbers by name.
    """

    kind: str
    study: str
    fields: Mapping[str, JSON] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def round(self) -> int:
        """Return the number of the round that the message names."""
        number = self.fields.get("round")
        if type(number) is not int or not 1 <= number < 2**31:
            _bad("it names no round")
        return number

    def array(self, name: str, kind: str, size: int) -> NDArray[Any]:
        """Return an array of the message, which must have this type and this many numbers."""
        array = self.arrays.get(name)
        if array is None or array.dtype != np.dtype(kind) or array.shape != (size,):
            _bad(f"it does not have {size:,} numbers of the type {kind} under the name {name}")
        return array


def pack(message: Message) -> bytes:
    """Write a message as bytes.

    Examples
    --------
    >>> sent = pack(Message("round", "ab12", {"round": 1}, {"weights": np.zeros(2)}))
    >>> unpack(sent).array("weights", "f8", 2).tolist()
    [0.0, 0.0]
    """
    arrays = {name: np.asarray(one) for name, one in message.arrays.items()}
    headers = [[name, f"{one.dtype.kind}{one.dtype.itemsize}", one.size] for name, one in arrays.items()]
    head = {"kind": message.kind, "study": message.study, "fields": dict(message.fields), "arrays": headers}
    text = json.dumps(head, allow_nan=False, separators=(",", ":")).encode()
    bodies = [one.astype(one.dtype.newbyteorder("<")).tobytes() for one in arrays.values()]
    return b"".join([_MAGIC, _LENGTH.pack(len(text)), text, *bodies])


def unpack(data: bytes) -> Message:
    """Read a message, or refuse bytes that are none.

    Examples
    --------
    >>> unpack(b"hello")
    Traceback (most recent call last):
    tacit.errors.TacitError: this version of Tacit cannot read this as a message of a study
    ...
    """
    message: object = data
    if not isinstance(message, bytes) or not data.startswith(_MAGIC) or len(data) > MAX_BYTES:
        _bad("it does not start like a message, or it is too long")
    start = len(_MAGIC) + _LENGTH.size
    if len(data) < start:
        _bad("it is cut off")
    [length] = _LENGTH.unpack_from(data, len(_MAGIC))
    if length > _MAX_HEAD or len(data) < start + length:
        _bad("it is cut off")
    try:
        head = json.loads(data[start : start + length], parse_constant=_bad)
        kind, study, fields, headers = head["kind"], head["study"], head["fields"], head["arrays"]
    except (ValueError, LookupError, TypeError, RecursionError):
        _bad("its first part is not JSON with kind, study, fields and arrays")
    if not (isinstance(kind, str) and isinstance(study, str) and isinstance(fields, dict)):
        _bad("its kind, study or fields have the wrong type")
    return Message(kind, study, fields, _arrays(headers, data, start + length))


def _arrays(headers: object, data: bytes, at: int) -> dict[str, NDArray[Any]]:
    """Read the arrays that the head lists; together they fill the rest of the message exactly."""
    if not isinstance(headers, list) or len(headers) > _MAX_ARRAYS:
        _bad("its arrays are not listed")
    arrays: dict[str, NDArray[Any]] = {}
    for header in headers:
        if not isinstance(header, list) or len(header) != 3:
            _bad("its arrays are not listed")
        name, kind, size = header
        if not isinstance(name, str) or str(kind) not in _TYPES or type(size) is not int or size < 0:
            _bad("one of its arrays has the wrong type")
        end = at + math.prod((8, size))
        if name in arrays or end > len(data):
            _bad("it is cut off, or it names an array twice")
        array = np.frombuffer(data, dtype=np.dtype(f"<{kind}"), count=size, offset=at)
        arrays[name] = array.astype(array.dtype.newbyteorder("="))
        at = end
    if at != len(data):
        _bad("it has more bytes after its end")
    return arrays


def weights_digest(weights: NDArray[np.float64]) -> str:
    """Return the digest of weights, by which a reply says what it was computed for."""
    return hashlib.sha256(np.asarray(weights).astype("<f8").tobytes()).hexdigest()


def refusal(study: str, error: TacitError) -> bytes:
    """Write a refusal as a message: code, what and why; all of it follows from public facts."""
    return pack(Message("refusal", study, {"code": error.code, "what": error.what, "why": error.why}))


def _bad(why: str) -> NoReturn:
    raise TacitError(
        "bad-message",
        "this version of Tacit cannot read this as a message of a study",
        why=why,
        fix=Say("use one version of Tacit everywhere, and send its messages unchanged"),
    )
