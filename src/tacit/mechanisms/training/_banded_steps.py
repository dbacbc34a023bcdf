"""Banded steps, training with correlated noise: later noise takes back a part of earlier noise.

Row t is y_t = c_0 x_t + c_1 x_(t-1) + ... + z_t with b whole-number coefficients c and fresh noise z_t; the
noisy sum x_t is computed from the rows. Every unit belongs to one of at least b groups and can only be in the
samples of its group's steps. So the rows that two samples of one unit reach never overlap, and each sample
costs one Gaussian whose sensitivity is the norm of c. The proof is in docs/proofs/learning.md.

The banded run is the state of these steps: groups of units, past sums and estimates.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tacit import noise
from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Set
from tacit.mechanisms._mechanism import figure, show
from tacit.mechanisms._noise_laws import square_root_up
from tacit.mechanisms._randomness import sampling_secret
from tacit.mechanisms.training._sampled_steps import SampledSteps, noise_multiple, wrapped_sums
from tacit.parameters import Integer
from tacit.strategies import band_coefficients, column_norm_squared, totals_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Cost
    from tacit.mechanisms.training._sampled_steps import StepSums


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
        state: dict[str, Any] = json.loads(memory) if memory else {}
        self.taken: int = state.get("taken", 0)
        self.past: list[list[NDArray[Any]]] = [[_array(one) for one in row] for row in state.get("past", [])]
        self._secret: str = state.get("secret", "" if state or names is None else sampling_secret())
        if self._secret:
            self.group_of = np.array([self._group(name) for name in names or ()], dtype=np.int64)
        elif state:
            self.group_of = _array(state["groups"])[:units]
        else:
            group_numbers = np.asarray(noise.uniform_below(groups, units))
            self.group_of = group_numbers.astype(np.min_scalar_type(groups - 1))

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
        sums = wrapped_sums(exact).copy()  # later steps need them, whatever becomes of the argument
        fresh = np.asarray(noise.rounded_gaussian(self.sigma, sums.shape))
        with np.errstate(over="ignore"):
            row = self.coefficients[0] * sums + fresh
            for c, (earlier, _) in zip(self.coefficients[1:], self.past, strict=False):
                row += c * earlier
        estimate = row.astype(np.float64)
        for c, (_, earlier_estimate) in zip(self.coefficients[1:], self.past, strict=False):
            estimate -= c * earlier_estimate
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
        reach = len(self.coefficients) - 1
        self.past = [values, *self.past][:reach]
        self.taken += 1

    def memory(self) -> bytes:
        """Return the state as bytes for the next instalment; whoever holds them can undo the noise.

        Without names, their length shows how many units there are; with names, it is public.
        """
        past = [[_document(one) for one in row] for row in self.past]
        groups = {"secret": self._secret} if self._secret else {"groups": _document(self.group_of)}
        state = {"taken": self.taken, "past": past, **groups}
        return json.dumps(state).encode()


def _document(array: Any) -> dict[str, Any]:
    contiguous = np.ascontiguousarray(array.cpu() if hasattr(array, "cpu") else array)
    little = contiguous.astype(contiguous.dtype.newbyteorder("<"), copy=False)
    return {
        "type": little.dtype.str,
        "shape": list(contiguous.shape),
        "bytes": b64encode(little.tobytes()).decode(),
    }


def _array(document: dict[str, Any]) -> NDArray[Any]:
    flat = np.frombuffer(b64decode(document["bytes"]), np.dtype(document["type"]))
    return flat.reshape(document["shape"]).astype(flat.dtype.newbyteorder("="))


@dataclass(frozen=True, init=False, repr=False, slots=True)
class BandedSteps(SampledSteps):
    """Steps with correlated noise: the totals of many steps have less error than with independent noise.

    Guarantee: with g groups all steps together cost ``ceil(steps / g)`` Gaussians of sensitivity norm(c)
    times `sensitivity`, each on a Poisson sample of rate g times `rate`; add/remove, also where a step
    depends on the noisy sums before it. The group of a unit is drawn independently of all other units. With
    one band in one group these are `SampledSteps`; with ``groups = 1 / rate`` nothing is sampled.

    Parameters
    ----------
    sigma
        The standard deviation of the noise on a row, in whole grid steps.
    sensitivity
        How far one unit can move one sum, in L2, in whole grid steps.
    rate
        The probability that a unit is in the sample of a step, over its group and its coin.
    steps
        How many steps one release takes.
    bands
        The number of coefficients.
    groups
        The number of groups, at least `bands` (the default) and at most 1 / rate.
    parts
        In how many instalments the steps are taken: `release_next` takes the steps of one.

    Examples
    --------
    >>> import tacit as tc
    >>> fewer = tc.mechanisms.BandedSteps.calibrated(
    ...     epsilon=3, delta=1e-6, sensitivity=1, rate=1 / 512, steps=512, bands=32)
    >>> plain = tc.mechanisms.SampledSteps.calibrated(
    ...     epsilon=3, delta=1e-6, sensitivity=1, rate=1 / 512, steps=512)
    >>> round(fewer.spread / plain.spread, 2)  # the error of running totals at equal privacy
    0.4
    """

    coefficients: tuple[int, ...]
    groups: int
    parts: int

    def __init__(
        self,
        *,
        sigma: Number,
        sensitivity: Number,
        rate: Number,
        steps: int,
        bands: int,
        groups: int | None = None,
        parts: int = 1,
    ) -> None:
        SampledSteps.__init__(self, sigma=sigma, sensitivity=sensitivity, rate=rate, steps=steps)
        coefficients = band_coefficients(steps, bands)
        number = count("groups", len(coefficients) if groups is None else groups, zero=False)
        check_groups(number, len(coefficients), self.rate)
        object.__setattr__(self, "coefficients", coefficients)
        object.__setattr__(self, "groups", number)
        instalments = Integer(1, self.steps, f"the number of steps is {self.steps:,}", instead=1)
        object.__setattr__(self, "parts", instalments.read("parts", parts))

    @classmethod
    def calibrated(  # type: ignore[override]
        cls,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        sensitivity: Number,
        rate: Number,
        steps: int,
        bands: int,
        groups: int | None = None,
        parts: int = 1,
    ) -> Self:
        """Return the steps with the smallest sigma whose cost stays within the promise.

        Guarantee: the cost of the returned mechanism fits the promise; this is checked forward.

        Parameters
        ----------
        epsilon, delta, rho
            The promise; `rho` only where nothing is sampled.
        sensitivity, rate, steps, bands, groups, parts
            As for the mechanism itself.

        Examples
        --------
        >>> made = BandedSteps.calibrated(
        ...     epsilon=1, delta=1e-6, sensitivity=4, rate=0.01, steps=200, bands=8)
        >>> made.cost.epsilon(delta=1e-6) <= 1
        True
        """
        share, coefficients = rational("rate", rate), band_coefficients(steps, bands)
        number = count("groups", len(coefficients) if groups is None else groups, zero=False)
        check_groups(number, len(coefficients), share)
        multiple = noise_multiple(epsilon, delta, rho, rate=number * share, steps=-(-steps // number))
        movement = square_root_up(Fraction(column_norm_squared(coefficients))) * rational(
            "sensitivity", sensitivity
        )
        return cls(
            sigma=multiple * movement,
            sensitivity=sensitivity,
            rate=rate,
            steps=steps,
            bands=bands,
            groups=groups,
            parts=parts,
        )

    @property
    def bands(self) -> int:
        """The number of coefficients."""
        return len(self.coefficients)

    @property
    def moved(self) -> Fraction:
        """How far one sample of a unit moves all rows together, in L2."""
        return square_root_up(Fraction(column_norm_squared(self.coefficients))) * self.sensitivity

    @property
    def cost(self) -> Cost:
        """The cost of all steps."""
        from tacit.accounting import Cost

        each = Cost.gaussian(sigma=self.sigma, sensitivity=self.moved)
        return -(-self.steps // self.groups) * each.sampled(self.groups * self.rate)

    def start(self, units: int, memory: bytes = b"", names: Sequence[bytes] | None = None) -> BandedRun:
        """Return the state of a run over so many units, new or from its memory."""
        each = self.groups * self.rate
        return BandedRun(
            self.coefficients, self.groups, each, self.sigma, units=units, memory=memory, names=names
        )

    def release(self, value: StepSums) -> Any:  # type: ignore[override]
        """Take all steps, and return the result."""
        self._take(value, self.start(value.units), self.steps)
        return value.result()

    def release_next(self, value: StepSums, memory: bytes) -> tuple[Any, bytes]:
        """Take the steps of one instalment; return the result, and the memory for the next; it is secret.

        Parameters
        ----------
        value
            The sums. Units have the same places as before, or the value has their ``names`` (`BandedRun`), so
            that units may come and go. If it has a ``part``, that is the
            number of the instalment from 1, and the steps of instalments that were lost in between stay
            untaken: whoever saw that one failed, or watched it, must not get its rows again with fresh noise.
        memory
            What the last call returned; empty at first. It holds exact sums: who has it can undo the noise.
        """
        run = self.start(value.units, memory, getattr(value, "names", None))
        ends = [self.steps * part // self.parts for part in range(self.parts + 1)]
        part: int | None = getattr(value, "part", None)
        if part is None:
            end = next((end for end in ends if end > run.taken), run.taken)
        else:
            end = ends[part]
            run.skip(ends[part - 1])
        self._take(value, run, max(0, end - run.taken))
        return value.result(), run.memory()

    @staticmethod
    def _take(value: StepSums, run: BandedRun, steps: int) -> None:
        for _ in range(steps):
            value.update(run.noisy(value.sums(run.sample())))

    @property
    def spread(self) -> float:
        """The root mean square error of the totals of the steps, over all steps, in grid steps."""
        return float(self.sigma) * totals_error(self.coefficients, self.steps)

    def to_json(self) -> dict[str, Any]:
        """Return the name, the exact parameters, the numerics and the cost."""
        return {
            **SampledSteps.to_json(self),
            "mechanism": "banded-steps",
            "coefficients": list(self.coefficients),
            "groups": self.groups,
            "parts": self.parts,
        }

    def describe(self) -> str:
        """Return the mechanism in a few words."""
        return (
            f"{self.steps:,} steps, each with a sample of {figure(self.rate)} and correlated noise of "
            f"{self.bands} bands, {figure(self.sigma / self.moved)} clips"
        )

    def __repr__(self) -> str:
        return (
            f"BandedSteps(sigma={show(self.sigma)}, sensitivity={show(self.sensitivity)}, "
            f"rate={show(self.rate)}, steps={self.steps}, bands={self.bands}, groups={self.groups})"
        )


def check_groups(groups: int, bands: int, rate: Fraction) -> None:
    """Refuse fewer groups than bands, and groups that a unit would have to be sampled from more than once."""
    why = f"two samples of one unit must be at least {bands} steps (bands) apart: the noise is made for that"
    Integer(bands, why=why, instead=bands).read("groups", groups)
    if groups * rate > 1:
        raise bad_parameter(
            "groups",
            f"at most 1 / rate, which is {figure(1 / rate)}",
            groups,
            why="each group has its turn once in this many steps, so its units must be sampled that many "
            "times more often",
            fix=Set(bands=max(1, int(1 / rate))),
        )
