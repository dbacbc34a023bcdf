"""Heavy hitters of a survey: the answers of a long public list that stand out from the coins.

For unknown texts, respondents report prefixes, and the collector grows those that stand out.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.bisection import first_integer
from tacit.core import needs
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Say, Set
from tacit.mechanisms import LinearHashing, SupportRandomizer, walsh_hadamard
from tacit.parameters import Integer, RealNumber
from tacit.report import Report, Reportable, ReportTable, short_percent
from tacit.surveys._estimates import score_interval, variance_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Cost
    from tacit.exact import Number


_MOST_SHOWN = 40
_MOST_BYTES = 7
_MOST_NEW_BITS = 20
_MOST_HASH_BITS = 4  # more bits would make the collector's work longer than the answer is worth
_KEPT = 32
_KEPT_ABOVE = 2.5  # standard deviations


class HeavyRow(NamedTuple):
    """One answer that stands out, with its estimated share and an interval."""

    answer: Any
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, repr=False)
class HeavyHitters(Reportable):
    """The answers that stand out, the largest share first.

    Guarantee
    ---------
    With at least the stated confidence, every reported answer was given by at least one respondent. All
    intervals together cover their shares with the stated confidence, although the answers were picked for
    standing out (the intervals allow for all candidates, not only for those that are shown).

    Parameters
    ----------
    rows
        The answers with shares and intervals.
    confidence
        How sure both statements are.
    candidates
        How many answers could have been reported.
    respondents
        How many reports the shares are estimated from.
    least
        An answer is reported if its estimated share is at least this.
    epsilon
        What the survey promised its respondents.
    """

    rows: tuple[HeavyRow, ...]
    confidence: float
    candidates: int
    respondents: int
    least: float
    epsilon: float

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[HeavyRow]:
        return iter(self.rows)

    @property
    def answers(self) -> list[Any]:
        """The answers alone."""
        return [row.answer for row in self.rows]

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame (extra ``pandas``)."""
        needs("to_pandas", "pandas", "tacit[pandas]")
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(HeavyRow._fields))

    def report(self) -> Report:
        """Return the table, and what it does not show."""
        sure = short_percent(self.confidence)
        lines = tuple(
            (
                str(row.answer),
                short_percent(row.share),
                f"{short_percent(row.low)} to {short_percent(row.high)}",
            )
            for row in self.rows[:_MOST_SHOWN]
        )
        more = len(self.rows) - _MOST_SHOWN
        lead = (
            f"Of {self.candidates:,} candidates. Estimated shares below {short_percent(self.least)} are not "
            "shown: the coins alone can produce them."
        )
        notes = (
            lead,
            f"With {sure}, each answer that is shown was given by somebody, and all intervals hold together.",
            *((f"{more:,} more answers.",) if more > 0 else ()),
        )
        title = f"answers that stand out, {self.respondents:,} reports, epsilon {self.epsilon:g}"
        return Report(title, (), (ReportTable("", ("answer", "share", f"{sure} interval"), lines),), notes)


def find_heavy(
    reports: object,
    randomizer: SupportRandomizer,
    confidence: float = 0.95,
    *,
    labels: Sequence[Any] | None = None,
) -> HeavyHitters:
    """Return the answers of a public list that stand out from the coins.

    Guarantee: as `HeavyHitters` states. An answer that nobody gave is supported by each report independently
    with probability q, so the number of reports that support it is binomial, and an answer is reported if
    this law reaches its number with probability at most (1 - confidence) / size.

    Parameters
    ----------
    reports
        The reports of all respondents, as the randomizer drew them.
    randomizer
        `LinearHashing` (lists of up to millions: one transform for the whole list) or `SubsetSelection`.
    confidence
        How sure the statements about all answers are together.
    labels
        The answers in their order; by default their places 0, 1, ... in the list.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> from tacit.surveys import find_heavy
    >>> drug = tc.mechanisms.LinearHashing(epsilon=4, size=50_000)
    >>> truths = np.repeat([7, 31_415, 9], [3000, 2000, 5])
    >>> find_heavy(drug.release(truths), drug).answers[:2]     # by chance a third may follow
    [7, 31415]
    """
    if not isinstance(randomizer, SupportRandomizer):
        raise bad_parameter(
            "randomizer",
            "one for a list of answers",
            type(randomizer).__name__,
            fix=Say("pass the LinearHashing or SubsetSelection that drew the reports"),
        )
    if labels is not None and len(labels) != randomizer.size:
        raise bad_parameter(
            "labels", f"one for each of the {randomizer.size} answers", len(labels), fix=Set(labels=None)
        )
    support = randomizer.read_reports(reports)
    counts = randomizer.supports(support)
    places = np.flatnonzero(counts >= least_support(len(support), randomizer, confidence, randomizer.size))
    answers = places.tolist() if labels is None else [labels[place] for place in places.tolist()]
    return heavy_rows(answers, counts[places], len(support), randomizer, confidence, randomizer.size)


def heavy_rows(
    answers: list[Any],
    counts: NDArray[np.int64],
    respondents: int,
    randomizer: SupportRandomizer,
    confidence: float,
    candidates: int,
) -> HeavyHitters:
    """Return the answers with their shares and with intervals that hold for all candidates together."""
    p, q = float(randomizer.p), float(randomizer.q)
    shares = randomizer.shares(counts, respondents)
    variance = variance_of(p, q, respondents, covers="population")
    low, high = score_interval(shares, variance, 1 - (1 - confidence) / candidates)
    order = np.argsort(-shares, kind="stable")
    cut = least_support(respondents, randomizer, confidence, candidates)
    rows = tuple(
        HeavyRow(answers[i], float(shares[i]), max(0.0, float(low[i])), min(1.0, float(high[i])))
        for i in order.tolist()
    )
    smallest_share = float(randomizer.shares([cut], respondents)[0])
    return HeavyHitters(rows, confidence, candidates, respondents, smallest_share, float(randomizer.epsilon))


def least_support(respondents: int, randomizer: SupportRandomizer, confidence: float, candidates: int) -> int:
    """Return the smallest k with P(Bin(respondents, q) >= k) at most (1 - confidence) / candidates."""
    from scipy.special import bdtrc

    RealNumber(above=0, below=1, instead=0.95).read("confidence", confidence)
    if respondents == 0:
        raise TacitError("bad-parameter", "there is no report to search", fix=Say("collect reports first"))
    allowed, q = (1 - confidence) / candidates * (1 - 1e-6), float(randomizer.q)
    # nobody can have more than all reports
    return first_integer(lambda k: float(bdtrc(k - 1, respondents, q)) <= allowed, 0, respondents + 1)


@dataclass(frozen=True, init=False, repr=False, slots=True)
class StringHashing:
    """A plan for one question whose answers are not listed: words, medicines, addresses of web pages.

    Guarantee
    ---------
    Each respondent reports once, about one prefix of the text, by `LinearHashing`: epsilon, pure, for any two
    texts, whoever collects. Which prefix it is depends on the invitation alone. A reported text was given by
    at least one respondent, with the stated confidence (`HeavyHitters`).

    Texts are read as UTF-8, and the first ``length`` bytes count. **Longer texts are cut**: two texts with
    the same first bytes are one answer, and the result shows the cut text, with an ellipsis if it fills all
    bytes. Shorter texts are filled with zero bytes. Capital letters and accents count as they are written.

    Parameters
    ----------
    epsilon
        The promise to each respondent.
    length
        How many bytes of a text count, at most 7.
    steps
        How many bits each group of respondents adds to the prefix of the group before; they add up to
        8 length. By default 16 bits each.

    Examples
    --------
    >>> from tacit.surveys import StringHashing
    >>> plan = StringHashing(epsilon=4, length=4)
    >>> reports = plan.release(["aspirin"] * 4000 + ["ibuprofen"] * 4000)
    >>> sorted(list(plan.find(reports).answers)[:2])     # by chance a third may follow
    ['aspi…', 'ibup…']
    """

    length: int
    steps: tuple[int, ...]
    randomizers: tuple[LinearHashing, ...] = field(compare=False)

    def __init__(self, *, epsilon: Number, length: int = 6, steps: Sequence[int] | None = None) -> None:
        size = Integer(1, _MOST_BYTES, instead=6).read("length", length)
        text_bits = 8 * size
        layout = (
            tuple(min(16, text_bits - done) for done in range(0, text_bits, 16))
            if steps is None
            else tuple(steps)
        )
        good = all(step == int(step) and 1 <= step <= _MOST_NEW_BITS for step in layout)
        if not good or sum(layout) != text_bits or layout[0] < 8:
            raise bad_parameter(
                "steps",
                f"whole numbers from 1 to {_MOST_NEW_BITS} that add up to {text_bits}, the first at least 8",
                layout,
                fix=Set(steps=(16,) * (size // 2)) if size % 2 == 0 else Set(steps=None),
            )
        object.__setattr__(self, "length", size)
        object.__setattr__(self, "steps", layout)
        best = LinearHashing(epsilon=epsilon, size=2).bits
        bits = min(best, _MOST_HASH_BITS)
        ends = np.cumsum(layout).tolist()
        randomizers = tuple(LinearHashing(epsilon=epsilon, size=2**end - 1, bits=bits) for end in ends)
        object.__setattr__(self, "randomizers", randomizers)

    @property
    def cost(self) -> Cost:
        """What one report reveals about its respondent."""
        return self.randomizers[0].cost

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The type of an array of reports: the group, the words of the seed, and the answer."""
        bits = self.randomizers[0].bits
        return np.dtype([("group", np.uint8), ("seed", np.uint64, (bits,)), ("answer", np.uint32)])

    def groups_for(self, invitations: Iterable[object], *, label: str = "") -> NDArray[np.uint8]:
        """Return the group of each invitation, by SHA-256 of label and invitation: it is public."""
        many = len(self.steps)
        numbers = (
            int.from_bytes(hashlib.sha256(f"{label}\n{one}\ngroup".encode()).digest()[:8], "big") % many
            for one in invitations
        )
        return np.fromiter(numbers, np.uint8)

    def release(self, texts: Sequence[str], *, invitations: Iterable[object] | None = None) -> NDArray[Any]:
        """Return one report for each text, in the order of the texts.

        Parameters
        ----------
        texts
            What each respondent would answer.
        invitations
            What the respondents' groups follow from; by default 0, 1, ...
        """
        codes = np.fromiter((self._code(text) for text in texts), np.uint64, len(texts))
        groups = self.groups_for(range(len(codes)) if invitations is None else invitations)
        if len(groups) != len(codes):
            raise bad_parameter("invitations", "one for each text", len(groups), fix=Set(invitations=None))
        out = np.empty(len(codes), self.dtype)
        out["group"] = groups
        for group, randomizer in enumerate(self.randomizers):
            mine = groups == group
            cut = codes[mine] >> np.uint64(8 * self.length - randomizer.words)
            reports = randomizer.release(cut.astype(np.int64) - 1)
            out["seed"][mine], out["answer"][mine] = reports["seed"], reports["answer"]
        return out

    def find(self, reports: NDArray[Any], confidence: float = 0.95) -> HeavyHitters:
        """Return the texts that stand out.

        The first group finds prefixes that stand out, and each further group those of their continuations
        that do. The best 32 above 2.5 standard deviations go on. The last group decides by itself, at the
        stated confidence for all continuations that it looks at, and gives the shares.
        """
        if getattr(reports, "dtype", None) != self.dtype:
            raise TacitError(
                "bad-report",
                "these are not reports of this plan",
                fix=Say("pass the array that release returned, or build one with the plan's dtype"),
            )
        prefixes = np.zeros(1, np.uint64)
        for group, (randomizer, step) in enumerate(zip(self.randomizers, self.steps, strict=True)):
            mine = reports[reports["group"] == group]
            group_reports = np.empty(len(mine), randomizer.dtype)
            group_reports["seed"], group_reports["answer"] = mine["seed"], mine["answer"]
            group_reports = randomizer.read_reports(group_reports)
            is_final = group == len(self.steps) - 1
            codes, counts = _continued(randomizer, group_reports, prefixes, step)
            candidates = max(1, len(codes))
            if is_final:
                cut = least_support(len(group_reports), randomizer, confidence, candidates)
                heavy = counts >= cut
                texts = [self._text(int(code)) for code in codes[heavy]]
                return heavy_rows(
                    texts, counts[heavy], len(group_reports), randomizer, confidence, candidates
                )
            prefixes = _best(codes, counts, len(group_reports), float(randomizer.q))
        raise AssertionError  # there is a last group

    def _code(self, text: str) -> int:
        """Return the first bytes as a number, filled with zero bytes."""
        content: object = text
        if not isinstance(content, str) or not text or text[0] == "\0" or _half_letter(text):
            raise TacitError(
                "unknown-category",
                "an answer is not text, is empty, starts with a zero byte or has an incomplete character",
                why="such an answer cannot be encoded as a number",
                fix=Say('let people who do not answer send a word such as "none"'),
            )
        return int.from_bytes(text.encode()[: self.length].ljust(self.length, b"\0"), "big")

    def _text(self, code: int) -> str:
        data = code.to_bytes(self.length, "big")
        decoded = data.rstrip(b"\0").decode(errors="replace")
        return f"{decoded}…" if data[-1] else decoded

    def __repr__(self) -> str:
        randomizer = self.randomizers[0]
        return (
            f"StringHashing(epsilon={float(randomizer.asked):g}, the first {self.length} bytes of a text in "
            f"{len(self.steps)} steps)"
        )


def _half_letter(text: str) -> bool:
    """Whether text holds one half of a pair of code units, which UTF-8 cannot write."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _continued(
    randomizer: LinearHashing, reports: NDArray[Any], prefixes: NDArray[np.uint64], step: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return every continuation of the kept prefixes by ``step`` bits, and how many reports support it.

    With the words r of a seed and the code v = (prefix, x), parity(r AND v) is parity(high bits AND prefix)
    XOR parity(low bits AND x): the first is a sign of the report, the second is one transform over x.
    """
    if not len(prefixes):
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    low, sign = _combinations(randomizer, reports)
    high = low >> np.uint64(step)
    index = (low & np.uint64((1 << step) - 1)).astype(np.int64) << 1
    index |= sign
    codes, counts = [], []
    new = np.arange(1 << step, dtype=np.uint64)
    for prefix in prefixes:
        flips = (np.bitwise_count(high & prefix) & np.uint8(1)).astype(np.int64)
        table = np.bincount(index ^ flips, minlength=2 << step)
        spectrum = table[::2] - table[1::2]
        walsh_hadamard(spectrum)
        codes.append((prefix << np.uint64(step)) | new)
        counts.append((spectrum + len(reports)) >> randomizer.bits)
    every, support = np.concatenate(codes), np.concatenate(counts)
    real = every > 0  # the code 0 is not in use
    return every[real], support[real]


def _combinations(
    randomizer: LinearHashing, reports: NDArray[Any]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the XOR of the words of every non-empty set of hash bits, and the parity of their answers."""
    words, answers = reports["seed"].astype(np.uint64), reports["answer"].astype(np.int64)
    mixed, parity = np.zeros(len(reports), np.uint64), np.zeros(len(reports), np.int64)
    all_words, all_signs = [], []
    for number in range(1, 2**randomizer.bits):  # Gray code: one XOR each
        bit = (number & -number).bit_length() - 1
        mixed = mixed ^ words[:, bit]
        parity = parity ^ ((answers >> bit) & 1)
        all_words.append(mixed)
        all_signs.append(parity)
    return np.concatenate(all_words), np.concatenate(all_signs)


def _best(codes: NDArray[np.uint64], counts: NDArray[np.int64], n: int, q: float) -> NDArray[np.uint64]:
    """Return the best prefixes that stand out: they are public then, and the next group continues them."""
    if not len(codes) or not n:
        return np.empty(0, np.uint64)
    good = np.flatnonzero(counts >= n * q + _KEPT_ABOVE * (n * q * (1 - q)) ** 0.5)
    order = np.argsort(-counts[good], kind="stable")[:_KEPT]
    return codes[good[order]]
