"""Linear local hashing: a report over a large list is a few random parities of the true answer.

Reports are decoded by the Walsh-Hadamard transform of whole numbers, in place: only additions and
subtractions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import noise
from tacit.errors import bad_parameter
from tacit.fixes import Code
from tacit.mechanisms._mechanism import show
from tacit.mechanisms.local._local_randomizer import (
    UNIT_ODDS,
    SupportRandomizer,
    bad_report,
    read_answers,
    read_odds,
    respond,
    several,
)
from tacit.mechanisms.local._subset_selection import read_list_size
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from tacit.exact import Number


def walsh_hadamard(table: NDArray[np.int64]) -> None:
    """Replace H[r] by the sum over r of (-1)^parity(r AND v) H[r], for every v; the length is 2^m.

    Examples
    --------
    >>> table = np.array([1, 0, 0, 2])
    >>> walsh_hadamard(table)
    >>> table.tolist()
    [3, -1, -1, 3]
    """
    bits = table.size.bit_length() - 1
    square = table.reshape(1 << (bits - bits // 2), 1 << (bits // 2))
    _along_rows(square)  # high bits: long runs of neighbours
    turned = np.ascontiguousarray(square.T)
    _along_rows(turned)  # low bits
    square[:] = turned.T


def _along_rows(matrix: NDArray[np.int64]) -> None:
    """Transform over the row number, so that every step handles whole rows at once."""
    rows, columns = matrix.shape
    half = 1
    while half < rows:
        pairs = matrix.reshape(rows // (2 * half), 2, half * columns)
        sums, differences = pairs[:, 0], pairs[:, 1]
        difference = sums - differences
        sums += differences
        differences[:] = difference
        half *= 2


_MAX_BITS = 8  # of a hash; above epsilon 6 or so, more would help little
_BLOCK = 1 << 16
_MAX_DECODED = 26  # bits of the table of one transform
_MAX_ANSWERS = 2**62 - 1


@dataclass(frozen=True, init=False, repr=False, slots=True)
class LinearHashing(SupportRandomizer):
    """Report a hash of `bits` bits of the true answer through randomized response over all hashes.

    Guarantee: epsilon = ln(A/B), pure, for each respondent and every seed, whoever collects the reports and
    whoever chose the seed.

    Argument: given the seed, the hash is a function of the answer, and the report is k-ary randomized
    response over the 2^bits hashes: any report has weight A or B, and the sum of the weights is constant.
    The seed is public and does not depend on the answer. Answers are coded 1 .. size; distinct codes are
    linearly independent over the field of two elements, so that their hashes under a uniform seed are exactly
    independent and q is exactly 2^-bits.

    Parameters
    ----------
    epsilon, odds
        One of the two: the promise, or A exactly, with B = 2^32.
    size
        The number of answers; the answers are the places 0 .. size - 1.
    bits
        The bits of a hash; by default the number with the smallest variance.

    Examples
    --------
    >>> import tacit as tc
    >>> words = tc.mechanisms.LinearHashing(epsilon=1, size=100_000)
    >>> words.bits, words.words, words.q
    (2, 17, Fraction(1, 4))
    >>> reports = words.release([77] * 4000)
    >>> reports["seed"].shape, int(words.supports(reports).argmax())
    ((4000, 2), 77)
    """

    size: int
    bits: int
    odds: int
    epsilon: Fraction = field(compare=False)
    asked: Fraction = field(compare=False)

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        size: int,
        bits: int | None = None,
        odds: int | None = None,
    ) -> None:
        favour, actual, request = read_odds(epsilon, odds)
        answers = read_list_size(size, max_size=_MAX_ANSWERS)
        chosen = _best_bits(favour) if bits is None else bits
        Integer(1, _MAX_BITS, instead=2).read("bits", chosen)
        for name, value in (
            ("size", answers),
            ("bits", chosen),
            ("odds", favour),
            ("epsilon", actual),
            ("asked", request),
        ):
            object.__setattr__(self, name, value)

    @property
    def words(self) -> int:
        """The bits of each word of a seed: enough for the codes 1 .. size."""
        return self.size.bit_length()

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The type of an array of reports: the words of the seed, and the answer."""
        word = np.uint32 if self.words <= 32 else np.uint64
        return np.dtype([("seed", word, (self.bits,)), ("answer", np.uint32)])

    def to_json(self) -> dict[str, Any]:
        """Return the law and its parameters, exactly: equal documents mean equal chances."""
        return {
            "mechanism": "linear-hashing",
            "size": self.size,
            "words": self.words,
            "bits": self.bits,
            "odds": str(self.odds),
            "cost": self.cost.to_json(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> LinearHashing:
        """Rebuild the randomizer that `to_json` describes."""
        return cls(odds=int(document["odds"]), size=document["size"], bits=document["bits"])

    def describe(self) -> str:
        """Return a short phrase for people."""
        return f"linear hashing of {self.size:,} answers to {2**self.bits} values"

    @property
    def p(self) -> Fraction:
        """The probability that the reported hash is that of the true answer."""
        return _truth(self.odds, self.bits)

    @property
    def q(self) -> Fraction:
        """The probability that the reported hash is that of an answer that is not true."""
        return Fraction(1, 2**self.bits)

    def probability(self, report: object, *, truth: int) -> Fraction:
        """Return P(answer given truth and seed), exactly; the seed itself does not depend on the truth."""
        reports = self.read_reports([report])
        answer = int(read_answers(truth, self.size)[0])
        p = self.p
        return p if self.supported(reports, answer)[0] else (1 - p) / (2**self.bits - 1)

    def seeds_for(self, invitations: Iterable[object], *, label: str = "") -> NDArray[Any]:
        """Return the public seed of each invitation: its words are cut from SHA-256.

        The digests are those of the label, the invitation and 0, 1, ..., each on a line of its own, in UTF-8.
        A word is the lowest bits of 4 bytes (8 bytes above 32 bits), the most significant byte first.

        Seeds from the collector keep a dishonest respondent from choosing one that supports every answer.
        Privacy holds for every seed.

        Parameters
        ----------
        invitations
            Numbers or texts that name the respondents' invitations.
        label
            A public text, such as the name of the survey, so that two surveys have different seeds.

        Examples
        --------
        >>> import tacit as tc
        >>> words = tc.mechanisms.LinearHashing(epsilon=1, size=1000)
        >>> words.seeds_for(["A-1", "A-2"], label="words").shape
        (2, 2)
        """
        word = self.dtype["seed"].base
        needed = word.itemsize * self.bits
        rows = [
            b"".join(
                hashlib.sha256(f"{label}\n{invitation}\n{number}".encode()).digest()
                for number in range(-(-needed // 32))
            )[:needed]
            for invitation in invitations
        ]
        words = np.frombuffer(b"".join(rows), dtype=word.newbyteorder(">")).reshape(len(rows), self.bits)
        return np.asarray(np.bitwise_and(words, (1 << self.words) - 1, dtype=word))

    def release(self, value: object, seeds: object = None) -> Any:
        """Return one report as a dictionary, or an array of reports for many respondents.

        Parameters
        ----------
        value
            The true answer, an array of true answers, or ``{"value": answer, "seed": seed}``.
        seeds
            A row of words for each respondent (`seeds_for`); by default they are drawn.
        """
        if isinstance(value, dict):
            seeds = value.get("seed")
            value = value.get("value")
        truths = read_answers(value, self.size)
        out = np.empty(truths.size, self.dtype)
        out["seed"] = self._draw_seeds(truths.size) if seeds is None else self._read_seeds(seeds, truths.size)
        out["answer"] = respond(_hashes(out["seed"], truths), 2**self.bits, self.p)
        if several(value):
            return out
        return {"seed": out["seed"][0].tolist(), "answer": int(out["answer"][0])}

    def _draw_seeds(self, rows: int) -> NDArray[np.int64]:
        return noise.uniform_below(1 << self.words, (rows, self.bits))

    def _read_seeds(self, seeds: object, rows: int) -> NDArray[Any]:
        array = np.atleast_2d(np.asarray(seeds))
        if array.shape != (rows, self.bits) or array.dtype.kind not in "iu":
            raise bad_report(f"a seed does not have {self.bits} whole numbers")
        if array.size and (array.min() < 0 or int(array.max()) >> self.words):
            raise bad_report(f"a word of a seed has more than {self.words} bits")
        return array

    def read_reports(self, reports: object) -> NDArray[Any]:
        """Return reports as an array, from an array or a list of dictionaries; refuse malformed ones."""
        if isinstance(reports, np.ma.MaskedArray):
            raise bad_report("a report is missing")
        if isinstance(reports, np.ndarray) and reports.dtype.names == ("seed", "answer"):
            seeds, answers = reports["seed"], reports["answer"]
        else:
            try:
                rows = list(reports)  # type: ignore[call-overload]
                seeds = np.array([row["seed"] for row in rows]).reshape(len(rows), self.bits)
                answers = np.array([row["answer"] for row in rows])
            except (TypeError, KeyError, ValueError, IndexError):
                raise bad_report("a report does not have a seed and an answer") from None
        if not len(answers):
            return np.empty(0, self.dtype)
        if answers.ndim != 1 or answers.dtype.kind not in "iu":
            raise bad_report("the answer of a report is not a whole number")
        if answers.min() < 0 or answers.max() >= 2**self.bits:
            raise bad_report(f"the answer of a report is not below {2**self.bits}")
        checked = self._read_seeds(seeds, len(answers))
        if isinstance(reports, np.ndarray) and reports.dtype == self.dtype:
            return reports
        out = np.empty(len(answers), self.dtype)
        out["seed"], out["answer"] = checked, answers
        return out

    def supports(self, reports: object) -> NDArray[np.int64]:
        """Return for each answer how many reports support it, by one transform for the whole list."""
        if self.words > _MAX_DECODED:
            raise bad_parameter(
                "size",
                f"below 2^{_MAX_DECODED} to count the support of every answer at once",
                self.size,
                fix=Code("randomizer.supported(reports, answer)"),
            )
        table = self.read_reports(reports)
        counts = np.zeros(2 << self.words, np.int64)
        block = max(_BLOCK, counts.size)
        for start in range(0, table.size, block):
            self._scatter(table[start : start + block], counts)
        spectrum = counts[::2] - counts[1::2]
        walsh_hadamard(spectrum)
        return (spectrum[1 : self.size + 1] + table.size) >> self.bits

    def _scatter(self, reports: NDArray[Any], counts: NDArray[np.int64]) -> None:
        """Count each combination of words by its XOR and the parity of the matching bits of the answer.

        Each word carries its bit of the answer below it, so that one XOR moves index and sign together.
        """
        words, answers = reports["seed"].astype(np.int64), reports["answer"].astype(np.int64)
        signed = [(words[:, j] << 1) | ((answers >> j) & 1) for j in range(self.bits)]
        index = np.zeros(reports.size, np.int64)
        for step in range(1, 2**self.bits):  # Gray code: every combination of words, one XOR each
            index ^= signed[(step & -step).bit_length() - 1]
            counts += np.bincount(index, minlength=counts.size)

    def supported(self, reports: NDArray[Any], answer: int) -> NDArray[np.bool_]:
        """Return for each report whether its hash is that of one answer."""
        return np.asarray(_hashes(reports["seed"], np.full(len(reports), answer)) == reports["answer"])

    def _numbers(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        return np.column_stack([reports["seed"], reports["answer"]]).astype(np.int64)

    def __repr__(self) -> str:
        return (
            f"LinearHashing(epsilon={show(self.epsilon)}, {self.size:,} answers to {2**self.bits} values; "
            f"the true one with probability {float(self.p):.4g})"
        )


def _hashes(seeds: NDArray[Any], answers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the hashes: bit j is the parity of word j AND the code of the answer, which is answer + 1."""
    codes = (answers + 1).astype(seeds.dtype)
    hashes = np.zeros(codes.size, np.int64)
    for j in range(seeds.shape[1]):
        parity = np.bitwise_count(seeds[:, j] & codes) & np.uint8(1)
        hashes |= parity.astype(np.int64) << j
    return hashes


@lru_cache(maxsize=1024)
def _truth(odds: int, bits: int) -> Fraction:
    return Fraction(odds, odds + (2**bits - 1) * UNIT_ODDS)


def _best_bits(odds: int) -> int:
    """Return the bits with the smallest variance at share 0."""

    def variance(bits: int) -> Fraction:
        p, q = _truth(odds, bits), Fraction(1, 2**bits)
        return q * (1 - q) / (p - q) ** 2

    return min(range(1, _MAX_BITS + 1), key=variance)
