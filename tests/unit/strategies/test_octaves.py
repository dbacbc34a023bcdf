"""Bounds from noisy counts of octaves: cells, thresholds, ranges of known data, and broken twins."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import tacit as tc
from support.repeatable_noise import rng
from tacit.strategies import (
    ANSWER_SHARE,
    NARROWING_SHARE,
    OCTAVE_SHARE,
    WIDENING,
    CellNoise,
    OctaveCells,
    OctaveRange,
    _octaves,
    answer_share,
    find_bounds,
    find_group_bounds,
    narrow_group_bounds,
)

REAL, INTEGER = OctaveCells(), OctaveCells(integer=True)
DAYS = (18_628, 20_088)  # from 2021-01-01 to the end of 2024


def laplace(generator, scale, size):
    """Draw discrete Laplace noise."""
    p = -math.expm1(-1 / scale)
    return generator.geometric(p, size) - generator.geometric(p, size)


def histogram(values, cells=REAL):
    return np.bincount(cells.indices(values), minlength=cells.size)


def part_counts(values, outer):
    ends = [float(end) for end in outer.parts]
    at = np.searchsorted(ends, values, side="left") - 1
    return np.bincount(at[(at >= 0) & (at < len(ends) - 1)], minlength=len(ends) - 1)


def bounds_of(values, generator, epsilon=1, cells=REAL):
    """Search and narrow as a plan does; return the bounds, or None."""
    noise, fine = (CellNoise(float(1 / (epsilon * share))) for share in (OCTAVE_SHARE, NARROWING_SHARE))
    outer = find_bounds(histogram(values, cells) + laplace(generator, noise.scale, cells.size), noise, cells)
    if outer is None or not outer.narrows:
        return outer and outer.bounds()
    counts = part_counts(values, outer)
    return outer.narrow(counts + laplace(generator, fine.scale, len(counts)), fine)


def median_bounds(values, generator, draws=200, **options):
    ends = [bounds_of(values, generator, **options) for _ in range(draws)]
    return tuple(float(np.median([float(pair[i]) for pair in ends])) for i in (0, 1))


# -- cells


@pytest.mark.parametrize("cells", [REAL, INTEGER], ids=["real", "integer"])
def test_every_number_is_in_exactly_one_cell(cells):
    values = [0.0, -0.0, 1.0, -1.0, 37.0, -37.5, 2.0**-31, -(2.0**-31), 2.0**61, -(2.0**61), 1e300, -1e300]
    values += [math.nextafter(float(cut), side) for cut in cells.cuts for side in (-math.inf, math.inf)]
    values += [float(cut) for cut in cells.cuts]
    ends = [cells.ends(i) for i in range(cells.size)]
    for value in values:
        inside = [
            low < value <= high or (i == 0 and value <= low) or (i == cells.size - 1 and value > high)
            for i, (low, high) in enumerate(ends)
        ]
        assert [i for i, holds in enumerate(inside) if holds] == [cells.index(value)]
    assert cells.indices(values).tolist() == [cells.index(value) for value in values]


def test_infinities_are_in_the_outermost_cells_and_what_is_not_a_number_in_none():
    assert (REAL.index(-math.inf), REAL.index(math.inf)) == (0, REAL.size - 1)
    assert (REAL.index(-(2.0**62)), REAL.index(2.0**62)) == (0, REAL.size - 1)
    assert REAL.index(math.nan) is None


def test_there_are_as_many_cells_as_stated_and_their_ends_are_exact_doubles():
    assert (REAL.size, INTEGER.size) == (184, 124)
    assert [str(end) for end in REAL.ends(REAL.index(0.0))] == ["-1/1073741824", "0"]
    assert all(Fraction(float(cut)) == cut for cells in (REAL, INTEGER) for cut in cells.cuts)


def test_logarithms_put_numbers_next_to_powers_of_two_into_wrong_cells():
    """The twin: a logarithm that is rounded, and then the integer above it."""
    values = [math.nextafter(2.0**k, math.inf) for k in range(50)]
    by_logarithm = [REAL.index(2.0 ** (math.ceil(math.log2(value)) - 0.5)) for value in values]
    exact = [REAL.index(value) for value in values]
    assert exact == [REAL.zero + 1 + 31 + k for k in range(50)]
    assert by_logarithm != exact


def test_a_row_more_changes_one_count_by_1():
    values = rng.normal(100, 50, 300)
    before = histogram(values)
    for value in (0.0, 5.0, -5.0, 1e9, math.inf):
        after = histogram([*values, value])
        assert np.abs(after - before).sum() == 1


# -- thresholds


def test_the_thresholds_are_the_upper_points_of_sums():
    tail = 0.005 / 736
    points = [CellNoise(1).upper(tail, cells) for cells in (1, 2, 4, 8)]
    assert [round(point, 2) for point in points] == [11.21, 13.24, 16.22, 20.64]
    for cells, point in zip((1, 2, 4, 8), points, strict=True):  # X - Y of Gamma variables, by integration
        gamma = stats.gamma(cells)
        exceeded, _ = _integral(lambda y, p=point, g=gamma: g.pdf(y) * g.sf(p + y))
        assert exceeded == pytest.approx(tail, rel=1e-6)
    twin = [cells * points[0] for cells in (1, 2, 4, 8)]  # as if the noise of a window were one draw
    assert twin[1] > 1.5 * points[1]


def _integral(function):
    from scipy.integrate import quad

    return quad(function, 0, 200, epsabs=0, epsrel=1e-9, limit=500)


def test_the_thresholds_of_gaussian_noise_and_of_pooled_groups():
    tail = 0.005 / 736
    assert CellNoise(3, gaussian=True).upper(tail, 4) == pytest.approx(6 * stats.norm.isf(tail))
    pooled = CellNoise(2).pooled(1000)
    assert pooled.upper(tail, 8) == pytest.approx(2 * math.sqrt(16_000) * stats.norm.isf(tail), rel=1e-3)
    assert CellNoise(2).pooled(5).upper(tail) == CellNoise(2).upper(tail, 5)
    assert CellNoise(3, gaussian=True).pooled(4).upper(tail) == pytest.approx(6 * stats.norm.isf(tail))


@pytest.mark.parametrize("scale", [0, -1, math.nan])
def test_a_scale_is_positive(scale):
    with pytest.raises(tc.TacitError, match="scale"):
        CellNoise(scale)


def test_another_number_of_counts_is_refused():
    with pytest.raises(tc.TacitError, match="184 numbers"):
        find_bounds([0] * 124, CellNoise(1))


# -- no range


@pytest.mark.parametrize("noise", [CellNoise(5), CellNoise(0.3), CellNoise(20, gaussian=True)], ids=str)
@pytest.mark.parametrize("rows", [0, 10**6], ids=["empty", "zeros"])
def test_an_empty_table_and_zeros_have_no_range(noise, rows):
    """A range in at most 1 of 200 tables, at significance 1e-6. The twin has one in every tenth table."""
    generator, tables = rng, 1_000
    counts = np.zeros((tables, REAL.size))
    counts[:, REAL.zero] = rows
    drawn = generator.normal(0, noise.scale, counts.shape).round() if noise.gaussian else laplace(
        generator, noise.scale, counts.shape
    )  # fmt: skip
    wrong = sum(find_bounds(line, noise) is not None for line in counts + drawn)
    discrete = 2 if noise.scale < 1 else 1  # see CellNoise.upper
    assert wrong <= stats.binom.isf(1e-6, tables, 0.005 * discrete)
    twin = CellNoise(noise.scale / 2, noise.gaussian)  # noise taken for half as large as it is
    assert sum(find_bounds(line, twin) is not None for line in counts + drawn) > tables / 10


def test_noise_of_pooled_groups_alone_has_no_range():
    generator, groups, tables = rng, 20, 500
    pooled = CellNoise(5).pooled(groups)
    sums = laplace(generator, 5, (tables, groups, REAL.size)).sum(axis=1)
    assert sum(find_bounds(line, pooled) is not None for line in sums) <= stats.binom.isf(1e-6, tables, 0.005)
    twin = sum(find_bounds(line, CellNoise(5)) is not None for line in sums)  # the thresholds of one group
    assert twin > tables / 2


# -- ranges


def counts_at(cells=REAL, **rows):
    counts = np.zeros(cells.size)
    for value, number in rows.items():
        counts[cells.index(float(value.replace("n", "-").lstrip("v")))] += number
    return counts


def test_windows_find_what_no_single_cell_shows():
    counts = counts_at(v3=40, v6=40, v12=40, v24=40, v48=40)
    assert counts.max() < CellNoise(5).upper(0.005 / 736)
    assert [str(end) for end in find_bounds(counts, CellNoise(5)).bounds()] == ["0", "96"]


def test_a_far_cell_needs_more_rows_than_a_near_one():
    near, far = CellNoise(5).upper(2**-1.5 / 12), CellNoise(5).upper(0.0005 / 184)
    for value, threshold, end in (("v12", near, 16), ("v8000", far, 2**13)):
        for rows, high in ((threshold - 1, 8), (threshold + 1, end)):
            assert find_bounds(counts_at(v6=500, **{value: rows}), CellNoise(5)).high == high
    stepwise = counts_at(v6=500, v12=20, v24=20, v48=20)
    assert find_bounds(stepwise, CellNoise(5)).high == 64


def test_a_sure_cell_far_beyond_the_others_needs_more_rows():
    usual, rare = (CellNoise(5).upper(false / 736) for false in (0.005, 0.0005))
    assert find_bounds(counts_at(v6=500, v8000=usual + 1), CellNoise(5)).high == 8
    assert find_bounds(counts_at(v6=500, vn8000=usual + 1), CellNoise(5)).low >= 0
    assert find_bounds(counts_at(v6=500, v100=usual + 1), CellNoise(5)).high == 128  # four octaves beyond
    assert find_bounds(counts_at(v6=500, v8000=rare + 1), CellNoise(5)).high == 2**13
    assert find_bounds(counts_at(v8000=usual + 1), CellNoise(5)).high == 2**13  # nothing else is known


def farthest(outer):
    return 0 if outer is None else max(outer.high, -outer.low)


@pytest.fixture
def former_rule(monkeypatch):
    """Make the twin: a far cell needs no more rows than before, and groups are read without each other."""

    def change():
        monkeypatch.setattr(_octaves, "_FAR_CELL", 0.005)
        monkeypatch.setattr(_octaves, "_FAR", 200)
        monkeypatch.setattr(_octaves, "_UNLIKELY", 1)
        _octaves._thresholds.cache_clear()

    yield change
    _octaves._thresholds.cache_clear()


def test_noise_alone_seldom_makes_a_range_absurdly_wide(former_rule):
    """In 3,000 draws about 1 such range is expected, and about 7 of the twin."""
    exact, noise = histogram(rng.lognormal(2, 0.5, 2_000)), CellNoise(5)
    noisy = exact + laplace(rng, 5, (3_000, REAL.size))
    absurd = sum(farthest(find_bounds(line, noise)) > 2**10 for line in noisy)
    former_rule()
    assert absurd <= 4
    assert sum(farthest(find_bounds(line, noise)) > 2**10 for line in noisy) > absurd


def test_one_sure_cell_of_a_sign_decides_whether_the_sign_counts():
    assert find_bounds(counts_at(v6=500, vn6=50), CellNoise(5)).low >= 0
    assert find_bounds(counts_at(v6=500, vn6=60), CellNoise(5)).low == -8


@pytest.mark.parametrize(
    ("rows", "low"),
    [
        ({"v37": 500}, 32),
        ({"v37": 500, "v20": 100}, 16),
        ({"v37": 500, "v20": 15}, 16),
        ({"v37": 500, "v20": 12}, 32),
        ({"v37": 500, "v20": 100, "v10": 20}, 0),  # the third octave is filled
        ({"v37": 500, "v0": 60}, 0),  # zeros
        ({"v37": 500, "v0": 40}, 32),
        ({"v37": 500, "v3": 60}, 0),  # further in
        ({"v37": 500, "v3": 50}, 32),
    ],
    ids=str,
)
def test_the_inner_end_is_0_unless_all_values_are_far_from_it(rows, low):
    outer = find_bounds(counts_at(**rows), CellNoise(5))
    assert (outer.low, outer.high, outer.narrows) == (low, 64, low > 0)


def test_bounds_follow_data_that_are_multiplied_by_a_power_of_two():
    """The noise moves along with the cells. The twin keeps the reach of data near 1."""
    generator, moved_twins = rng, 0
    for case in range(60):
        values = generator.lognormal(0, generator.uniform(0.2, 2), 400) * generator.choice([1, -1], 400)
        values = np.abs(values) if case % 2 else values
        counts = histogram(values) + np.where(abs(np.arange(184) - 91.5) > 60, 0, laplace(generator, 4, 184))
        outer = find_bounds(counts, CellNoise(4))
        for k in (-9, 7, 20):
            shifted = np.zeros(184)
            shifted[: REAL.zero] = np.roll(counts[: REAL.zero], -k)
            shifted[REAL.zero] = counts[REAL.zero]
            shifted[REAL.zero + 2 :] = np.roll(counts[REAL.zero + 2 :], k)
            apart = find_bounds(shifted, CellNoise(4))
            if outer is None:
                assert apart is None
                continue
            assert (apart.low, apart.high) == (outer.low * 2**k, outer.high * 2**k)
            moved_twins += min(outer.bounds()[1], Fraction(64)) * 2**k != min(apart.bounds()[1], Fraction(64))
    assert moved_twins > 50


def test_mirrored_data_mirror_the_bounds():
    generator = rng
    for _ in range(60):
        values = generator.lognormal(generator.normal(0, 5), generator.uniform(0.1, 2), 500)
        counts = histogram(values) + laplace(generator, 4, 184)
        counts[REAL.zero + 1] = 0  # the numbers next to zero are in a cell of their own on one side only
        mirrored = counts.copy()
        mirrored[: REAL.zero], mirrored[REAL.zero + 2 :] = (
            counts[: REAL.zero + 1 : -1],
            counts[REAL.zero - 1 :: -1],
        )
        outer, mirror = (find_bounds(line, CellNoise(4)) for line in (counts, mirrored))
        assert (mirror.low, mirror.high) == (-outer.high, -outer.low)
        low, high = outer.bounds()
        assert mirror.bounds() == (-high, -low)
        if outer.narrows:
            parts = laplace(generator, 20, 16) + np.where(generator.random(16) < 0.3, 500, 0)
            low, high = outer.narrow(parts, CellNoise(20))
            assert mirror.narrow(parts[::-1], CellNoise(20)) == (-high, -low)


def test_known_data_have_the_stated_median_bounds():
    generator = rng
    assert median_bounds(np.full(2000, 37), generator) == (35, 39)
    assert median_bounds(np.full(2000, 37), generator, cells=INTEGER) == (35, 39)
    days = generator.integers(*DAYS, 2000)
    assert median_bounds(days, generator, cells=INTEGER) == (17_408, 21_504)
    assert median_bounds(-days, generator, cells=INTEGER) == (-21_504, -17_408)
    assert median_bounds(generator.integers(0, 2, 2000), generator, cells=INTEGER) == (0, 1)
    assert median_bounds(1e13 * generator.uniform(0, 1, 2000), generator)[1] == 2**44
    nine_of_ten = np.where(generator.random(2000) < 0.9, 0, generator.exponential(50, 2000))
    low, high = median_bounds(nine_of_ten, generator)
    assert low == 0
    assert 192 <= high <= 768  # zeros are most common, and no anchor


def test_an_end_is_widened_unless_its_octave_is_full():
    threshold = 16 * CellNoise(5).upper(2**-1.5 / 12)
    for rows, high in ((threshold - 1, 12), (threshold + 1, 8)):
        assert find_bounds(counts_at(v6=rows, v0=100), CellNoise(5)).bounds()[1] == high
        assert find_bounds(counts_at(vn6=rows, v0=100), CellNoise(5)).bounds()[0] == -high
    one_side = find_bounds(counts_at(v6=threshold + 1, vn6=threshold - 1), CellNoise(5))
    assert one_side.bounds() == (-12, 8)
    assert one_side.bounds(WIDENING["rare"]) == (-32, 32)  # in any case


# -- narrowing


def test_narrowed_bounds_are_half_as_wide_again_on_each_side_within_the_old_ends():
    outer, noise = OctaveRange(Fraction(16), Fraction(64)), CellNoise(20)
    counts = np.zeros(16)
    assert outer.narrow(counts, noise) == outer.bounds() == (16, 96)
    counts[[4, 7]] = 200  # from 28 to 40
    assert outer.narrow(counts, noise) == (22, 46)
    counts[0] = 200
    assert outer.narrow(counts, noise) == (16, 52)
    assert outer.bounds(WIDENING["rare"]) == (16, 256)


def test_a_part_counts_if_noise_alone_fills_it_rarely():
    outer, scale = OctaveRange(Fraction(32), Fraction(64)), 20
    counts = np.zeros(16)
    for rows, high in ((scale * math.log(160) - 1, 96), (scale * math.log(160) + 1, 39)):
        counts[2] = rows
        assert outer.narrow(counts, CellNoise(scale))[1] == high


@pytest.mark.parametrize(
    ("low", "high"), [(1, 2), (2, 4), (2, 8), (4, 16), (8, 32), (16, 64), (-32, -8), (32, 64)]
)
def test_parts_of_integers_end_at_integers(low, high):
    outer = OctaveRange(Fraction(low), Fraction(high), integer=True)
    assert (outer.parts[0], outer.parts[-1]) == (low, high)
    assert len(outer.parts) <= 17
    assert all(end.denominator == 1 for end in outer.parts)
    counts = np.zeros(len(outer.parts) - 1)
    counts[-1] = 10_000
    low, high = outer.narrow(counts, CellNoise(5))
    assert low < high
    assert low.denominator == high.denominator == 1


# -- groups


def test_groups_without_a_sure_cell_share_the_range_of_the_summed_noisy_counts():
    """Two large groups on different scales, and twelve small ones that only together show a range."""
    noise, apart, wider = CellNoise(5), 0, 0
    for _ in range(20):
        large = [rng.lognormal(mean, 0.5, 600) for mean in (0, 7)]
        small = [rng.lognormal(4, 0.3, 25) for _ in range(12)]
        exact = np.array([histogram(values) for values in (*large, *small)])
        noisy = exact + laplace(rng, 5, exact.shape)
        ranges = find_group_bounds(noisy, noise)
        assert [own.pooled for own in ranges[:2]] == [False, False]
        wider += ranges[1].high > 100 * ranges[0].high
        shared = find_bounds(noisy.sum(axis=0), noise.pooled(len(noisy)))
        pooled = [own for own in ranges if own.pooled]
        assert len(pooled) >= 6
        assert all((own.low, own.high) == (shared.low, shared.high) for own in pooled)
        # the twin: a histogram of all rows, drawn again and not paid for
        second = find_bounds(exact.sum(axis=0) + laplace(rng, 5, REAL.size), noise)
        apart += (second.low, second.high) != (shared.low, shared.high)
    assert apart > 0
    assert wider > 15


def test_a_group_far_beyond_all_groups_together_needs_more_rows():
    usual = CellNoise(5).upper(0.005 / 736)
    others = [counts_at(v6=2_000) for _ in range(6)]
    for rows, end in ((usual + 5, 8), (usual + 5 * math.log(100) + 5, 2**13)):
        for value in ("v8000", "vn8000"):
            own = find_group_bounds(np.array([*others, counts_at(**{value: rows})]), CellNoise(5))[-1]
            assert own.pooled == (end == 8)
            assert max(own.high, -own.low) == end


def test_no_line_of_many_groups_has_an_absurd_range(former_rule):
    """In 300 tables of ten small groups at most one is expected, and about 5 of the twin."""
    exact, noise = np.array([histogram(rng.lognormal(2, 0.5, 40)) for _ in range(10)]), CellNoise(5)
    noisy = exact + laplace(rng, 5, (300, *exact.shape))

    def absurd():
        return sum(any(farthest(own) > 2**10 for own in find_group_bounds(table, noise)) for table in noisy)

    now = absurd()
    former_rule()
    assert now <= 2
    assert absurd() > now


def test_empty_groups_have_no_range_together():
    noise = CellNoise(5)
    drawn = laplace(rng, 2, (30, REAL.size))  # below all thresholds but once in 10^7 runs
    assert find_group_bounds(drawn, noise) == [None] * 30
    assert narrow_group_bounds([None] * 30, [()] * 30, noise) == [None] * 30
    assert find_group_bounds(np.zeros((0, REAL.size)), noise) == []


def test_groups_that_share_a_range_share_the_counts_of_its_parts():
    own, shared = OctaveRange(Fraction(1), Fraction(2)), OctaveRange(Fraction(32), Fraction(64), pooled=True)
    flat = OctaveRange(Fraction(0), Fraction(8))
    fine, few = CellNoise(10), np.zeros(16)
    few[2] = 40  # noise alone may fill this; four of them together, it does not
    assert shared.narrow(few, fine) == (32, 96)
    bounds = narrow_group_bounds([own, flat, None, *[shared] * 4], [np.zeros(16), (), (), *[few] * 4], fine)
    assert bounds == [(1, 3), (0, 12), None, *[(35, 39)] * 4]


# -- shares


def test_the_shares_of_each_branch_add_up_to_the_whole_cost():
    assert OCTAVE_SHARE + NARROWING_SHARE + answer_share(narrowed=True) == 1
    assert OCTAVE_SHARE + answer_share(narrowed=False) == 1
    assert answer_share(narrowed=True) == ANSWER_SHARE
    twin = OCTAVE_SHARE + NARROWING_SHARE + answer_share(narrowed=False)
    assert twin == Fraction(10375, 10_000)
