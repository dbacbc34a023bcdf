"""What the noise functions accept and return, and what they refuse."""

import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import TacitError, noise

SCALED = [noise.geometric, noise.discrete_laplace, noise.discrete_gaussian, noise.rounded_gaussian]


def refusal(code, function, *args, **kwargs):
    with pytest.raises(TacitError) as caught:
        function(*args, **kwargs)
    assert caught.value.code == code
    return caught.value


@pytest.mark.parametrize("draw", SCALED)
@pytest.mark.parametrize(
    "scale",
    [
        *[0, -1, -0.5, Fraction(-1, 3), math.nan, math.inf, -math.inf, Decimal("NaN"), 5e-324],
        *[True, False, np.bool_(True), np.float32(1), np.int8(1), 1j, "1", b"1", None, {}],
        *[2**60 + 1, 1e300, pytest.param(10**5000, id="10^5000")],
    ],
)
@pytest.mark.parametrize("size", [None, 5])
def test_a_bad_scale_is_refused(draw, scale, size):
    assert " must be " in refusal("bad-parameter", draw, scale, size).what


@pytest.mark.parametrize("draw", SCALED)
@pytest.mark.parametrize(
    "scales",
    [
        np.array([1.0, 0.0]),
        np.array([1.0, -1.0]),
        np.array([1.0, np.nan]),
        np.array([1.0, np.inf]),
        np.array([1.0, 5e-324]),
        np.array([1.0, 2.0**61]),
        np.array([True, True]),
        np.array([1, 0]),
        np.array([2**60 + 1]),
        np.array([1], np.float32),
        np.array(["1"]),
        np.array([1j]),
        [1, -1],
        [1, True],
        [Fraction(1, 2), "x"],
        [[1, 2], [3]],
    ],
    ids=str,
)
def test_bad_scales_among_many_are_refused(draw, scales):
    refusal("bad-parameter", draw, scales)


@pytest.mark.parametrize(
    "draw", [lambda size: noise.discrete_laplace(1, size), lambda size: noise.bernoulli(0.5, size)]
)
@pytest.mark.parametrize("size", [-1, (2, -1), 1.5, "3", True, (1, True), 2**33, (2**20, 2**20), [2, 3]])
def test_a_bad_size_is_refused(draw, size):
    refusal("bad-parameter", draw, size)


@pytest.mark.parametrize("draw", SCALED)
def test_shapes(draw):
    assert type(draw(3)) is int
    assert type(draw(Fraction(1, 3))) is int
    for size, shape in [
        (0, (0,)),
        (5, (5,)),
        (300, (300,)),
        ((2, 3), (2, 3)),
        ((), ()),
        ((0, 4), (0, 4)),
        (np.int64(4), (4,)),
    ]:
        out = draw(3, size)
        assert (out.shape, out.dtype) == (shape, np.int64)
    for scales in [[1, 2.5, Fraction(1, 3)], np.array([1.0, 2.0, 3.0]), np.array([1, 2, 3]), (1, 2, 3)]:
        assert draw(scales).shape == (3,)
        assert draw(scales, size=(4, 3)).shape == (4, 3)
        assert "shape" in refusal("bad-parameter", draw, scales, size=4).what
    assert draw(np.ones((2, 1)), size=(2, 5)).shape == (2, 5)
    assert draw([]).shape == (0,)
    assert type(draw(np.float64(2.5))) is int
    assert type(draw(np.array(2.5))) is int


@pytest.mark.parametrize("draw", SCALED)
def test_each_element_gets_its_own_scale(draw):
    tiny, huge = Fraction(1, 10**6), 10**15
    out = draw([tiny, huge] * 100)
    assert not out[::2].any()
    assert np.abs(out[1::2]).min() > 10**6  # fails by chance once in 10^7
    often = draw(np.repeat([1e-6, 1e15], 5000))
    assert not often[:5000].any()
    assert np.count_nonzero(np.abs(often[5000:]) < 10**6) <= 1
    grid = draw(np.array([[1e-6], [1e15]]), size=(2, 50))
    assert not grid[0].any()
    assert (grid[1] != 0).all()


def test_numbers_beyond_64_bits_are_refused_in_arrays_and_drawn_as_python_ints_alone():
    assert max(abs(noise.discrete_laplace(2**60)) for _ in range(3000)).bit_length() > 60
    seen = [noise.geometric(2**60) for _ in range(20_000)]
    assert max(seen) >= 2**63  # one in 3000 is
    for draw in [noise.discrete_laplace, noise.geometric]:
        refusal("does-not-fit", draw, 2**60, size=200_000)
        refusal("does-not-fit", draw, [2**60] * 4000 + [2**60 - k for k in range(50_000)])
        refusal("does-not-fit", lambda draw=draw: [draw(2**60, size=100) for _ in range(2000)])
    assert noise.discrete_gaussian(2**60, size=10_000).shape == (10_000,)  # 8 sigma: does not happen
    assert noise.discrete_gaussian([2**60 - k for k in range(10_000)]).shape == (10_000,)
    assert noise.rounded_gaussian(2**59, size=10_000).shape == (10_000,)
    assert noise.rounded_gaussian([2**60 - k for k in range(1000)]).shape == (1000,)
    refusal("does-not-fit", noise.rounded_gaussian, 2**60, size=10**6)  # numbers of 63 bits: 4 sigma


@pytest.mark.parametrize("draw", SCALED)
@pytest.mark.parametrize("scale", [1e-6, 2.0**-1022, Fraction(1, 2**1000)])
def test_tiny_scales_give_zero_without_warnings(draw, scale):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert draw(scale) == 0
        assert not draw(scale, size=1000).any()
        assert not draw([scale, scale]).any()


def test_floats_are_read_as_decimals():
    assert noise.quantise(1, 0.1) == 10
    assert noise.quantise([7], 0.1).tolist() == [70]


@pytest.mark.parametrize("p", [-0.1, 1.0000001, math.nan, True, "x", 2])
def test_a_bad_chance_is_refused(p):
    refusal("bad-parameter", noise.bernoulli, p)
    refusal("bad-parameter", noise.bernoulli, [0.5, p])


def test_coins_of_certain_outcome():
    assert noise.bernoulli(1, size=70_000).all()
    assert not noise.bernoulli(0, size=70_000).any()
    assert noise.bernoulli([0, 1, 0.0, 1.0]).tolist() == [False, True, False, True]
    assert noise.bernoulli(np.array([0.0, 1.0])).tolist() == [False, True]
    assert noise.bernoulli_exp([0, 10**30]).tolist() == [True, False]
    assert noise.bernoulli_exp(0, size=3).all()
    assert not noise.bernoulli_exp(1e300)
    assert not noise.bernoulli_exp(2.0**1000, size=10).any()
    assert type(noise.bernoulli(0.5)) is bool
    refusal("bad-parameter", noise.bernoulli_exp, -1)
    refusal("bad-parameter", noise.bernoulli_exp, math.inf)


def test_uniform_numbers():
    assert type(noise.uniform_below(10)) is int
    assert noise.uniform_below(10**100) > 10**50
    assert noise.uniform_below(2**63, size=5).dtype == np.int64
    assert (noise.uniform_below(2**63, size=1000) >= 0).all()
    assert noise.uniform_below([1, 2**63]).shape == (2,)
    assert noise.uniform_below(np.array([1, 1]), size=(3, 2)).tolist() == [[0, 0]] * 3
    assert noise.uniform_below([], size=0).shape == (0,)
    for n in [0, -1, 1.5, True, "3", None, [0], np.array([0]), np.array([1.5]), [1, 2.5], [True]]:
        refusal("bad-parameter", noise.uniform_below, n)
    refusal("bad-parameter", noise.uniform_below, [1, 2], size=3)
    refusal("does-not-fit", noise.uniform_below, 2**63 + 1, size=3)
    refusal("does-not-fit", noise.uniform_below, [2**63 + 1])
    refusal("does-not-fit", noise.uniform_below, np.array([2**63 + 1], np.uint64))


def test_permutations():
    assert noise.permutation(0).tolist() == []
    assert noise.permutation(1).tolist() == [0]
    assert sorted(noise.permutation(1000).tolist()) == list(range(1000))
    for n in [-1, 2.0, True, 2**40]:
        refusal("bad-parameter", noise.permutation, n)


def test_selection_accepts_whole_scores_of_any_size():
    assert noise.select([5]) == 0
    assert noise.select([0, 10**40]) == 1
    assert noise.select([-(2**63), 2**63 - 1]) == 1
    assert noise.select(np.array([0, 2**64 - 1], np.uint64)) == 1
    assert noise.select(np.array([-100, 100], np.int8)) == 1
    assert noise.select([2**70, 0, -(2**70)], scale=1e-9) == 0
    assert noise.select([0, 2**63]) == 1
    assert noise.select([3, 3], size=(2, 5)).shape == (2, 5)
    assert noise.select([3, 3], size=0).shape == (0,)
    chosen = noise.select([0, 30], scale=[1e-3, 2**60] * 300)
    assert (chosen[::2] == 1).all()
    assert 0 < chosen[1::2].sum() < 300
    assert type(noise.select(np.array([1, 2]))) is int
    assert noise.select_top([0, 10**40, -(10**40)], 3).tolist() == [1, 0, 2]
    assert noise.select_top([0, 2**64, 2**1200], 3, scale=Fraction(1, 2**1000)).tolist() == [2, 1, 0]
    assert noise.select_top([-(2**63), 2**63 - 1], 2).tolist() == [1, 0]
    assert noise.select_top([1, 2], 0).tolist() == []
    assert sorted(noise.select_top(range(2000), 2000, scale=2**60).tolist()) == list(range(2000))


@pytest.mark.parametrize(
    "scores",
    [
        [],
        [1.5],
        [True],
        ["a"],
        [[1, 2]],
        3,
        np.array([1.0]),
        np.array([True]),
        [1, 2.0],
        [None],
        [[1], [2, 3]],
    ],
)
def test_bad_scores_are_refused_without_showing_them(scores):
    for message in [
        refusal("bad-parameter", noise.select, scores),
        refusal("bad-parameter", noise.select_top, scores, 1),
    ]:
        assert "scores must be" in message.what
        assert "1.5" not in message.what


def test_other_bad_selections_are_refused():
    refusal("bad-parameter", noise.select, [1, 2], scale=0)
    refusal("bad-parameter", noise.select, [1, 2], scale=[1, 2], size=3)
    refusal("bad-parameter", noise.select, [1, 2], scale=[1, -2])
    refusal("bad-parameter", noise.select_top, [1, 2], 1, scale=[1, 2])
    refusal("bad-parameter", noise.select_top, [1, 2], 3)
    refusal("bad-parameter", noise.select_top, [1, 2], -1)
    refusal("bad-parameter", noise.select_top, [1, 2], True)


grids = st.one_of(
    st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**6),
    st.integers(-40, 40).map(lambda e: Fraction(2) ** e),
    st.integers(-9, 9).map(lambda e: Fraction(10) ** e),
)
doubles = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12)


@given(st.lists(doubles, min_size=1, max_size=20), grids)
def test_quantise_is_exact(values, grid):
    expected = [math.floor(Fraction(x) / grid + Fraction(1, 2)) for x in values]
    assert [noise.quantise(x, grid) for x in values] == expected
    if max(map(abs, expected)) < 2**63:
        assert noise.quantise(np.array(values), grid).tolist() == expected
        assert noise.quantise(values, grid).tolist() == expected
    else:
        refusal("does-not-fit", noise.quantise, np.array(values), grid)


@given(st.integers(-(10**6), 10**6), grids, st.integers(-3, 3))
def test_quantise_is_exact_next_to_every_half(k, grid, steps):
    x = float((2 * k + 1) * grid / 2)
    for _ in range(abs(steps)):
        x = math.nextafter(x, math.copysign(math.inf, steps))
    expected = math.floor(Fraction(x) / grid + Fraction(1, 2))
    assert noise.quantise(x, grid) == expected
    assert noise.quantise(np.array([x, x]), grid).tolist() == [expected] * 2


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=9), grids)
def test_quantise_takes_whole_numbers(values, grid):
    expected = [math.floor(Fraction(x) / grid + Fraction(1, 2)) for x in values]
    assert [noise.quantise(x, grid) for x in values] == expected
    if max(map(abs, expected)) < 2**63:
        assert noise.quantise(np.array(values), grid).tolist() == expected
    else:
        refusal("does-not-fit", noise.quantise, np.array(values), grid)


def test_quantise_at_the_ends_of_the_doubles():
    tiny, huge = 5e-324, 1.7976931348623157e308
    assert noise.quantise(np.array([tiny, -tiny, 0.0, -0.0]), 1).tolist() == [0, 0, 0, 0]
    assert noise.quantise(np.array([tiny, -tiny]), 0.3).tolist() == [0, 0]
    assert noise.quantise(np.array([0.5, -0.5, 1.5, -1.5, 0.49999999999999994]), 1).tolist() == [
        1,
        0,
        2,
        -1,
        0,
    ]
    assert noise.quantise(huge, 1) == int(huge)
    assert noise.quantise(np.array([1e308]), 2.0**1000).tolist() == [
        math.floor(Fraction(1e308) / 2**1000 + Fraction(1, 2))
    ]
    refusal("does-not-fit", noise.quantise, np.array([huge]), 1)
    refusal("does-not-fit", noise.quantise, np.array([huge]), 0.1)
    refusal("does-not-fit", noise.quantise, np.array([2.0**63]), 1)
    assert noise.quantise(np.array([-(2.0**63)]), 1).tolist() == [-(2**63)]
    assert noise.quantise(np.array([[1.0], [2.0]], np.float32), 0.5).tolist() == [[2], [4]]
    assert noise.quantise([], 1).shape == (0,)


@pytest.mark.parametrize(
    "x",
    [math.nan, math.inf, [1.0, math.nan], np.array([-np.inf]), True, "1", [True], None, 1j, [[1], [1, 2]]],
)
def test_quantise_refuses_what_has_no_place(x):
    refusal("bad-parameter", noise.quantise, x, 1)


@pytest.mark.parametrize("grid", [0, -1, math.nan, math.inf, True, "1", [1, 2]])
def test_a_bad_grid_is_refused(grid):
    refusal("bad-parameter", noise.quantise, 1.0, grid)
    refusal("bad-parameter", noise.from_grid, 1, grid)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=9), grids)
def test_from_grid_rounds_once(values, grid):
    expected = [float(k * grid) for k in values]  # Python's Fraction -> float is correctly rounded
    assert [noise.from_grid(k, grid) for k in values] == expected
    out = noise.from_grid(np.array(values), grid)
    assert (out.tolist(), out.dtype) == (expected, np.float64)


@given(st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=9), grids)
def test_from_grid_rounds_small_multiples_once_too(values, grid):
    assert noise.from_grid(np.array(values), grid).tolist() == [float(k * grid) for k in values]


def test_from_grid_refuses():
    for k in [1.5, True, "1", None, [1.5], np.array([1.0]), [True]]:
        refusal("bad-parameter", noise.from_grid, k, 1)
    refusal("does-not-fit", noise.from_grid, 10**400, 1)
    assert noise.from_grid([], 1).shape == (0,)
    assert type(noise.from_grid(np.int64(3), 0.1)) is float


@given(st.floats(-1e6, 1e6), st.floats(0, 100), grids)
def test_a_change_moves_the_grid_by_no_more_than_its_ceiling(x, change, grid):
    """Law 1: |x - y| <= D moves the result by at most ceil(D / g)."""
    y = x + change
    moved = noise.quantise(y, grid) - noise.quantise(x, grid)
    assert 0 <= moved <= math.ceil((Fraction(y) - Fraction(x)) / grid)
