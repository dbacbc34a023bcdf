"""The k SNPs that are most strongly associated with a disease, chosen by their distance to significance.

The distance is how many people must change before a SNP's verdict changes, in closed form. The insignificant
tables form a convex set (an ellipse for the allelic test, a paraboloid for the trend test), so that both
distances follow from corners and tangents. Proofs: docs/proofs/gwas.md, "Distance to significance".
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from tacit.core import AnswerTable, Cells, Draft, Forecast, Step, Task
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Either, Say
from tacit.genomes._cohort_draft import check_unit, missing_source
from tacit.genomes._genotypes import as_number
from tacit.mechanisms import TopK
from tacit.parameters import Integer, RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tacit.core import Goal
    from tacit.genomes._cohort import Cohort
    from tacit.genomes._genotypes import GenotypeSource
    from tacit.genomes._sites import SiteList

    Whole = NDArray[np.int64]
    OrderPairs = tuple[tuple[tuple[int, int, int], tuple[int, int, int]], ...]


#: Scores are released in steps of a thousandth of a person.
SCORE_STEPS = 1_000
#: One person moves a score by at most one person, and rounding down by one step more.
SCORE_SENSITIVITY = SCORE_STEPS + 1

_MAX_PEOPLE = 10**8  # exact in 64 bits, and float errors of a distance stay far below a step
_CLOSE = 1e-13  # float comparisons that are closer than this are decided with whole numbers
_CHUNK = 8_192
_AT_ONCE = 64  # SNPs that are compared with all half-spaces at once
_TANGENTS = np.linspace(-1, 1, 65)
_LEVELS = np.linspace(0, 2, 49)
_SLOPES = 2 * np.concatenate([-(np.linspace(1, 0, 32, endpoint=False) ** 3), np.linspace(0, 1, 33) ** 3])
#: Genotypes in the order in which they are changed: the worst first, the best is what they become.
_ORDERS = ((0, 1, 2), (0, 2, 1), (2, 0, 1), (2, 1, 0))
_FIRST = (((0, 1, 2), (2, 1, 0)), ((2, 1, 0), (0, 1, 2)))


@dataclass(frozen=True)
class AssociationTest:
    """A test of cases against controls, whose numbers are public, at a public threshold.

    Guarantee: if one person's genotypes change, every score changes by at most `SCORE_SENSITIVITY`. A score
    of at most -1,000 is minus the number of people (in thousandths) who must change before the SNP is
    significant: exactly so for the trend test; for the allelic test it is half the alleles that must change,
    rounded up, so heterozygous people, who have one allele to change, may make it more people. A score of at
    least 0 says that the SNP stays significant whoever changes.

    Parameters
    ----------
    kind
        ``"allelic"`` (counts of alleles) or ``"trend"`` (Cochran-Armitage).
    cases, controls
        How many people there are.
    critical
        The value of chi-square from which on a SNP is significant.

    Examples
    --------
    >>> test = AssociationTest.at("allelic", cases=1_000, controls=1_000, threshold=5e-8)
    >>> cases, controls = np.array([[500, 400, 100], [300, 450, 250]]), np.array([[510, 395, 95]] * 2)
    >>> test.scores(cases, controls).tolist()
    [-69000, 96008]
    """

    kind: str
    cases: int
    controls: int
    critical: float

    @classmethod
    def at(cls, kind: str, *, cases: int, controls: int, threshold: float) -> AssociationTest:
        """Make the test for a p-value, or refuse if no table of so many people could be significant."""
        from scipy.stats import chi2

        RealNumber(above=0, below=1, instead=5e-8, why="it is a p-value").read("threshold", threshold)
        why = f"distances are exact for at most {_MAX_PEOPLE:,} people"
        cases = Integer(1, _MAX_PEOPLE - 1, why).read("cases", cases)
        controls = Integer(1, _MAX_PEOPLE - cases, why).read("controls", controls)
        test = cls(kind, cases, controls, float(chi2.isf(threshold, 1)))
        if test.people * (2 if kind == "allelic" else 1) <= test.critical:
            raise TacitError(
                "bad-parameter",
                f"with {cases:,} cases and {controls:,} controls no SNP can reach a p-value of {threshold:g}",
                why="even an allele that all cases and no controls have would not be significant",
                fix=Say("use a larger threshold, or a larger cohort"),
            )
        return test

    @property
    def people(self) -> int:
        """How many people there are."""
        return self.cases + self.controls

    def scores(self, cases: NDArray[np.integer], controls: NDArray[np.integer]) -> Whole:
        """Return one score for each SNP, in thousandths of a person, from counts of genotypes 0, 1 and 2.

        Parameters
        ----------
        cases, controls
            One row for each SNP, three numbers in a row; rows add up to the number of cases or controls.
        """
        r, s = np.asarray(cases, np.int64), np.asarray(controls, np.int64)
        parts = [
            self._part(r[start : start + _CHUNK], s[start : start + _CHUNK])
            for start in range(0, len(r), _CHUNK)
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _part(self, r: Whole, s: Whole) -> Whole:
        alleles = r[:, 1] + 2 * r[:, 2], s[:, 1] + 2 * s[:, 2]
        squares = r[:, 1] + 4 * r[:, 2] + s[:, 1] + 4 * s[:, 2]
        allelic = self.kind == "allelic"
        significant = self._allelic(*alleles) if allelic else self._trend(*alleles, squares)
        scores = np.empty(len(r), np.int64)
        for found in (True, False):
            rows = np.flatnonzero(significant == found)
            a, b, q = alleles[0][rows], alleles[1][rows], squares[rows]
            if found:
                away = self._beyond_ellipse(a, b) if allelic else self._beyond_paraboloid(a, b, q)
                scores[rows] = np.floor(SCORE_STEPS * (np.maximum(away, 0) - 1)).astype(np.int64)
            else:
                people = self._alleles_to_go(a, b) if allelic else self._people_to_go(r[rows], s[rows])
                scores[rows] = -SCORE_STEPS * people
        return scores

    # verdicts, exact: floats where they are clear, whole numbers where they are close

    def _allelic(self, x: Whole, w: Whole) -> NDArray[np.bool_]:
        u = x + w
        return self._exceeds(2 * self.people, self.controls * x - self.cases * w, u * (2 * self.people - u))

    def _trend(self, a: Whole, b: Whole, q: Whole) -> NDArray[np.bool_]:
        return self._exceeds(self.people, self.controls * a - self.cases * b, self.people * q - (a + b) ** 2)

    def _exceeds(self, factor: int, v: Whole, spread: Whole) -> NDArray[np.bool_]:
        """Return whether factor v^2 > critical R S spread."""
        scale = self.critical * self.cases * self.controls
        statistic, threshold = (
            float(factor) * np.square(v, dtype=np.float64),
            scale * spread.astype(np.float64),
        )
        answer = statistic > threshold
        for row in np.flatnonzero(np.abs(statistic - threshold) < _CLOSE * (statistic + threshold)):
            exact = self._scale * int(spread.flat[row])
            answer.flat[row] = factor * int(v.flat[row]) ** 2 > exact
        return np.asarray(answer)

    @cached_property
    def _scale(self) -> Fraction:
        return Fraction(self.critical) * self.cases * self.controls

    # not significant: the smallest ball with a significant corner

    def _alleles_to_go(self, x: Whole, w: Whole) -> Whole:
        """Return how many people must change, two alleles each, before the allelic test is significant."""
        low, high = np.zeros(len(x), np.int64), np.full(len(x), 2 * self.people, np.int64)
        _halve(lambda rows, alleles: self._allelic_ball(x[rows], w[rows], alleles), low, high)
        return (high + 1) // 2

    def _allelic_ball(self, x: Whole, w: Whole, alleles: Whole) -> NDArray[np.bool_]:
        """Return whether some change of so many alleles makes the test significant."""
        max_alleles = 2 * self.cases, 2 * self.controls
        reached = np.zeros(len(x), np.bool_)
        for axis, sign, turn in product((0, 1), (1, -1), (1, -1)):
            from_axis, other_axis = (x, w) if axis == 0 else (w, x)
            shifted = np.clip(from_axis + sign * alleles, 0, max_alleles[axis])
            remaining = alleles - np.abs(shifted - from_axis)  # what the border stops goes to the other axis
            other = np.clip(other_axis + turn * remaining, 0, max_alleles[1 - axis])
            reached |= self._allelic(shifted, other) if axis == 0 else self._allelic(other, shifted)
        return reached

    def _people_to_go(self, r: Whole, s: Whole) -> Whole:
        """Return how many people must change before the trend test is significant."""
        low, high = np.zeros(len(r), np.int64), np.full(len(r), self.people, np.int64)

        def ball(rows: Whole, people: Whole, orders: OrderPairs) -> NDArray[np.bool_]:
            return self._trend_ball(r[rows], s[rows], people, orders)

        _halve(partial(ball, orders=_FIRST), low, high)  # an upper bound, and mostly the answer
        low[:] = 0
        rows = np.flatnonzero(high > 1)
        orders = tuple(product(_ORDERS, _ORDERS))
        reached = ball(rows, high[rows] - 1, orders)
        high[rows[reached]] -= 1
        low[rows[~reached]] = high[rows[~reached]] - 1
        _halve(partial(ball, orders=orders), low, high)
        return high

    def _trend_ball(self, r: Whole, s: Whole, people: Whole, orders: OrderPairs) -> NDArray[np.bool_]:
        """Return whether some change of so many people makes the trend test significant."""
        reached = np.zeros(len(r), np.bool_)
        open_rows = np.arange(len(r))
        for case_order, control_order in orders:
            for split in range(4):
                k, cases, controls = people[open_rows], r[open_rows], s[open_rows]
                case_row, control_row = cases[:, case_order[0]], controls[:, control_order[0]]
                share = (np.zeros_like(k), k, case_row, k - control_row)[split]
                lowest = np.maximum(k - control_row - controls[:, control_order[1]], 0)
                highest = np.minimum(k, case_row + cases[:, case_order[1]])
                share = np.minimum(np.maximum(share, lowest), highest)
                a, qa = _changed(cases, case_order, share)
                b, qb = _changed(controls, control_order, k - share)
                hit = self._trend(a, b, qa + qb)
                reached[open_rows[hit]] = True
                open_rows = open_rows[~hit]
        return reached

    # significant: the distance from the convex set, by a fixed public grid of half-spaces that hold it

    def _beyond_ellipse(self, x: Whole, w: Whole) -> NDArray[np.float64]:
        R, S, ones = self.cases, self.controls, np.ones_like(_TANGENTS)
        n, m = np.concatenate([np.stack([ones, _TANGENTS]), np.stack([_TANGENTS, ones])], axis=1)
        reach = np.sqrt((n * R + m * S) ** 2 + self.critical * R * S * (n - m) ** 2 / (2 * self.people))
        best = np.zeros(len(x))
        for rows in _slices(len(x)):
            right, up = (x[rows] - R).astype(np.float64), (w[rows] - S).astype(np.float64)
            best[rows] = (np.abs(np.outer(n, right) + np.outer(m, up)) - reach[:, None]).max(axis=0) / 2
        return np.maximum(best, 0)

    @cached_property
    def _tangent_planes(self) -> tuple[NDArray[np.float64], ...]:
        """The public half-spaces of the trend test: normals, heights, and how far one person moves them."""
        level, slope = (one.ravel() for one in np.meshgrid(_LEVELS, _SLOPES))
        inside = level**2 + slope**2 <= 4
        level, slope = level[inside], slope[inside]
        N, c = self.people, self.critical
        n = 2 * level + 2 * slope * np.sqrt(self.controls * N / (c * self.cases))
        m = 2 * level - 2 * slope * np.sqrt(self.cases * N / (c * self.controls))
        moves = [abs(one) for k in (n, m) for one in (k - 1, 2 * k - 4, k - 3)]
        size = np.max(moves, axis=0)
        return n / size, m / size, 1 / size, N * (level**2 + slope**2) / size

    def _beyond_paraboloid(self, a: Whole, b: Whole, q: Whole) -> NDArray[np.float64]:
        n, m, unit, height = self._tangent_planes
        best = np.zeros(len(a))
        for rows in _slices(len(a)):
            plane = np.outer(n, a[rows]) + np.outer(m, b[rows]) - np.outer(unit, q[rows])
            best[rows] = (plane - height[:, None]).max(axis=0)
        return np.maximum(best, 0)


def _slices(rows: int) -> list[slice]:
    return [slice(start, start + _AT_ONCE) for start in range(0, rows, _AT_ONCE)]


def _halve(reached: Callable[[Whole, Whole], NDArray[np.bool_]], low: Whole, high: Whole) -> None:
    """Move both ends of each row together until the upper one is the first number that is reached."""
    while (rows := np.flatnonzero(high - low > 1)).size:
        middle = (low[rows] + high[rows]) // 2
        is_reached = reached(rows, middle)
        high[rows[is_reached]], low[rows[~is_reached]] = middle[is_reached], middle[~is_reached]


def _changed(counts: Whole, order: tuple[int, int, int], people: Whole) -> tuple[Whole, Whole]:
    """Return allele counts and their squares after so many people changed, the worst genotype first."""
    worst, middle, best = order
    changed = np.minimum(people, counts[:, worst])
    second = np.minimum(people - changed, counts[:, middle])
    alleles = counts[:, 1] + 2 * counts[:, 2] + changed * (best - worst) + second * (best - middle)
    squares = (
        counts[:, 1] + 4 * counts[:, 2] + changed * (best**2 - worst**2) + second * (best**2 - middle**2)
    )
    return alleles, squares


def missing_genotypes(frequency: Sequence[float] | None, variants: int) -> NDArray[np.int64]:
    """Return what a missing call counts as: the likeliest genotype at the public frequency, else 0 copies.

    Examples
    --------
    >>> missing_genotypes([0.1, 0.5, 0.9, float("nan")], 4).tolist(), missing_genotypes(None, 2).tolist()
    ([0, 1, 2, 0], [0, 0])
    """
    if frequency is None:
        return np.zeros(variants, np.int64)
    p = np.nan_to_num(np.asarray(frequency, np.float64), nan=0.0)
    return np.asarray(np.argmax(np.stack([(1 - p) ** 2, 2 * p * (1 - p), p**2]), axis=0), np.int64)


def draft_top_snps(cohort: Cohort, goal: Goal, k: int, test: str, threshold: Fraction) -> Draft[AnswerTable]:
    """Draft the choice of k SNPs by their distance to significance; the scores of all go into one choice.

    Everything here is a public fact, also who is a case (1) and a control (0); others (-1) are not counted.
    """
    check_unit(cohort, "choices of SNPs")
    source, variants = cohort._source, len(cohort.sites)  # noqa: SLF001 - a part of the cohort
    Integer(1, variants, f"the number of variants is {variants:,}", instead=variants).read("k", k)
    status, level = read_status(cohort), float(threshold)
    chosen = AssociationTest.at(
        test, cases=int((status == 1).sum()), controls=int((status == 0).sum()), threshold=level
    )
    assert goal.epsilon is not None  # noqa: S101 - the only total that choices take
    noise = TopK(goal.epsilon, k=k, sensitivity=SCORE_SENSITIVITY, adjacency="replace", grid=1)
    label = {
        "statistic": f"people from significance, {test} test",
        "assumes": "who is a case and who is a control is public",
    }
    task = Task(
        document={
            "genomes": "top SNPs",
            "test": test,
            "threshold": str(threshold),
            "cases": chosen.cases,
            "controls": chosen.controls,
            "status": hashlib.sha256(status.tobytes()).hexdigest(),
            "frequency": _digest(source.sites.numbers.get("frequency")),
            **cohort.public_facts,
        },
        open=lambda _: _scores(source, chosen, status),
        steps=(Step(noise, lambda scores, _: scores, label),),
        reading=lambda noisy, confidence: _read_choice(source.sites, noisy[0], confidence),
        unavailable=lambda: missing_source(source),
    )
    behind = noise.half_width(goal.confidence, candidates=variants) / SCORE_STEPS
    return Draft(
        task=task,
        asked=f"the {k} SNPs with the strongest association ({test} test, p below {level:g})",
        forecast=[
            Forecast(
                "variant", f"the {k} SNPs with the highest scores", noise.describe(), None,
                note=f"each lies at most {behind:,.0f} people behind the best SNP that is left",
                caution="a SNP that is listed need not be significant",
            )
        ],
        facts=[
            ("test", (f"{test}, significant at p below {level:g}; {chosen.cases:,} cases, "
                     f"{chosen.controls:,} controls")),
            ("score", "how many people must change before a SNP's verdict changes"),
            ("public", "who is a case and who is a control; the site list"),
            ("protected", ("one person's genotypes at all SNPs, compared with any other genotypes of a "
                          "person with the same status")),
            ("missing calls", ("count as the likeliest genotype at the public frequency; without a "
                              "frequency, as 0 copies")),
        ],
    )  # fmt: skip


def _scores(source: GenotypeSource, test: AssociationTest, status: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the score of every SNP, in thousandths of a person."""
    counts = source.table_counts_of([status == 1, status == 0])
    tables, missing = counts[:, :, :3].copy(), counts[:, :, 3]
    stand_in = missing_genotypes(source.sites.numbers.get("frequency"), tables.shape[1])
    for copies in (0, 1, 2):
        tables[:, :, copies] += np.where(stand_in == copies, missing, 0)
    return test.scores(tables[0], tables[1])


def _read_choice(sites: SiteList, places: Sequence[int], confidence: Fraction) -> AnswerTable:
    """Return the chosen SNPs, best first."""
    blank = (None,) * len(places)
    names = [sites.label(place) if sites.names[place] == "." else sites.names[place] for place in places]
    return AnswerTable(
        {
            "rank": tuple(range(1, len(places) + 1)),
            "variant": tuple(names),
            "chromosome": tuple(sites.chromosome[place] for place in places),
            "position": tuple(sites.position[place] for place in places),
        },
        {"number": Cells(tuple(place + 1 for place in places), blank, blank)},
        float(confidence),
        notes={
            "number": "the place of the variant in the site list, from 1; a variant that is picked need "
            "not be significant"
        },
    )


def read_status(cohort: Cohort) -> NDArray[np.int8]:
    """Return who is a case (1) and a control (0), -1 for neither; refuse unless all of it is public."""
    phenotype = cohort._phenotype  # noqa: SLF001 - the parts of a cohort
    if phenotype is None:
        raise TacitError(
            "bad-parameter",
            "the cohort has no phenotype",
            why="an association test compares cases with controls",
            fix=Code('tc.genotypes(..., phenotype=[1, 0, ...], status="public", people=2_000)'),
        )
    if cohort.status != "public" or cohort.people is None:
        raise TacitError(
            "not-allowed",
            "this test needs a public case status, and a public number of people",
            why="if a person's status changed, the numbers of cases and controls would move, and with them "
            "the scores of all SNPs: no bound on that change is proven",
            fix=Either(
                Code('tc.genotypes(..., status="public", people=2_000)'),
                Code('tc.genotypes(..., name="phenotypes", unit="phenotype").summary_statistics()'),
                Say("protect the phenotypes instead of the genotypes"),
            ),
        )
    statuses = np.asarray([_case(one) for one in phenotype], np.int8)
    if not (statuses == 1).any() or not (statuses == 0).any():
        raise bad_parameter("phenotype", "1 for cases and 0 for controls, some of each", "other values",
                            fix=Code("phenotype=[1, 0, 0, 1]"))  # fmt: skip
    return statuses


def _case(value: object) -> int:
    """Read one public status: 1, 0, or -1 for anything else."""
    number = as_number(value)
    return int(number) if number in {0.0, 1.0} else -1


def _digest(numbers: Sequence[float] | None) -> str | None:
    return None if numbers is None else hashlib.sha256(repr(tuple(numbers)).encode()).hexdigest()
