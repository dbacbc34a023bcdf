"""The banded run, the state of steps with correlated noise: groups of units, past sums and estimates."""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import noise
from tacit.mechanisms._sampling_secret import sampling_secret

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray


class BandedRun:
    """What later steps of `BandedSteps` need from earlier ones. It is secret: it holds exact sums.

    Guarantee: groups are drawn once, for each unit independently; each row is drawn once, with fresh noise.

    Parameters
    ----------
    coefficients
        The whole-number coefficients of a row.
    groups
        How many groups there are; step t samples from group t modulo this number.
    rate
        The probability that a unit is sampled in a step of its group.
    sigma
        The standard deviation of the noise on a row.
    units
        How many units there are.
    memory
        What `memory` returned; empty for a new run.
    names
        What each unit is called, where units may come and go between instalments: its group is then a keyed
        hash of its name, whoever else is there. Otherwise units keep their group by their place.

    Examples
    --------
    >>> from fractions import Fraction
    >>> run = BandedRun((2, 1), 2, Fraction(1), Fraction(1, 10**6), units=6)
    >>> samples, sums = [], []
    >>> for exact in (10, 20, 30):
    ...     samples.append(run.sample().tolist())
    ...     sums.append(run.noisy([exact]).tolist())
    >>> sorted(samples[0] + samples[1]), samples[0] == samples[2], sums
    ([0, 1, 2, 3, 4, 5], True, [[10.0], [20.0], [30.0]])
    """

    def __init__(
        self,
        coefficients: tuple[int, ...],
        groups: int,
        rate: Fraction,
        sigma: Fraction,
        *,
        units: int,
        memory: bytes = b"",
        names: Sequence[bytes] | None = None,
    ) -> None:
        self.coefficients = coefficients
        self.groups = groups
        self.rate = rate
        self.sigma = sigma
        held: dict[str, Any] = json.loads(memory) if memory else {}
        self.taken: int = held.get("taken", 0)
        self.past: list[list[NDArray[Any]]] = [[_array(one) for one in row] for row in held.get("past", [])]
        self._secret: str = held.get("secret", "" if held or names is None else sampling_secret())
        if self._secret:
            self.group_of = np.array([self._group(name) for name in names or ()], dtype=np.int64)
        elif held:
            self.group_of = _array(held["groups"])[:units]
        else:
            drawn = np.asarray(noise.uniform_below(groups, units))
            self.group_of = drawn.astype(np.min_scalar_type(groups - 1))

    def _group(self, name: bytes) -> int:
        """Return the group of a name: to whoever does not know the secret, it is uniform and independent."""
        digest = hashlib.sha256(f"{self._secret}|".encode() + name).digest()
        return int.from_bytes(digest, "big") % self.groups

    def skip(self, step: int) -> None:
        """Pass over the steps before this one: they were lost, and no row is drawn twice.

        Their sums count as zero in later rows. If the groups were lost too, new ones start with a full round
        of groups, so that no unit is in more steps than was paid for.
        """
        if not self.taken:
            step = -(-step // self.groups) * self.groups
        gap = min(step - self.taken, len(self.coefficients) - 1)
        if gap > 0 and self.past:
            nothing = [np.zeros_like(one) for one in self.past[0]]
            self.past = [*([nothing] * gap), *self.past][: len(self.coefficients) - 1]
        self.taken = max(self.taken, step)

    def sample(self) -> NDArray[np.int64]:
        """Return the places of the units that this step samples: some of one group."""
        members = np.flatnonzero(self.group_of == self.taken % self.groups)
        if self.rate == 1:
            return members
        return members[np.asarray(noise.bernoulli(self.rate, members.size))]

    def noisy(self, exact: Any) -> Any:
        """Return the noisy sum of this step as floats, from its row and the noisy sums before it.

        The row is computed modulo 2^64; what wraps around is still a function of the noisy row.
        """
        sums = np.asarray(exact)
        if sums.dtype.kind not in "iu":
            raise TypeError(f"sums must be whole numbers, not {sums.dtype}: their sensitivity is exact")
        sums = sums.astype(np.int64)
        drawn = np.asarray(noise.rounded_gaussian(self.sigma, sums.shape))
        with np.errstate(over="ignore"):
            row = self.coefficients[0] * sums + drawn
            for c, (earlier, _) in zip(self.coefficients[1:], self.past, strict=False):
                row += c * earlier
        estimate = row.astype(np.float64)
        for c, (_, known) in zip(self.coefficients[1:], self.past, strict=False):
            estimate -= c * known
        estimate /= self.coefficients[0]
        self.remember([sums, estimate])
        return estimate

    def correlated(self, fresh: list[Any]) -> list[Any]:
        """Return the noise of this step for a field that adds it to floats: fresh noise less past noise.

        With independent fresh noise of deviation sigma / c_0, sums plus this noise follow the same law as
        `noisy` does, if floats were real numbers. Arrays and tensors of any kind are kept as they come.
        """
        mixed = list(fresh)
        for c, past in zip(self.coefficients[1:], self.past, strict=False):
            ratio = c / self.coefficients[0]
            mixed = [one - ratio * earlier for one, earlier in zip(mixed, past, strict=True)]
        self.remember(mixed)
        return mixed

    def remember(self, values: list[Any]) -> None:
        """Keep what the next steps need from this one, and count the step."""
        kept = len(self.coefficients) - 1
        self.past = [values, *self.past][:kept]
        self.taken += 1

    def memory(self) -> bytes:
        """Return the state as bytes for the next instalment; whoever holds them can undo the noise.

        Without names, their length shows how many units there are; with names, it is public.
        """
        past = [[_document(one) for one in row] for row in self.past]
        groups = {"secret": self._secret} if self._secret else {"groups": _document(self.group_of)}
        held = {"taken": self.taken, "past": past, **groups}
        return json.dumps(held).encode()


def _document(array: Any) -> dict[str, Any]:
    made = np.ascontiguousarray(array.cpu() if hasattr(array, "cpu") else array)
    little = made.astype(made.dtype.newbyteorder("<"), copy=False)
    return {
        "type": little.dtype.str,
        "shape": list(made.shape),
        "bytes": b64encode(little.tobytes()).decode(),
    }


def _array(document: dict[str, Any]) -> NDArray[Any]:
    flat = np.frombuffer(b64decode(document["bytes"]), np.dtype(document["type"]))
    return flat.reshape(document["shape"]).astype(flat.dtype.newbyteorder("="))
