"""At the door of a mechanism nothing separates neighbours: no promotion, no error, no type."""

import contextlib
import math
import os
import re
import threading
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from tacit.errors import TacitError
from tacit.mechanisms._grid import beyond_stored, to_steps
from tacit.mechanisms._input_values import exact, exact_float, in_floats, read_integers, read_numbers

m = tc.mechanisms


def steps_of(mechanism, value):
    """The whole steps that get the noise."""
    numbers = read_numbers(value)
    grid, law = mechanism.lattice(np.size(numbers))
    if not isinstance(numbers, np.ndarray):
        return [to_steps(numbers, grid)], law
    many = not mechanism.on_own_grid(numbers.size)
    steps = to_steps(numbers, grid, many=many, stored=in_floats(value))
    return [int(one) for one in np.asarray(steps).ravel().tolist()], law


def largest_loss(mechanism, a, b):
    """The largest loss that an output can show between two values: the L1 move over the scale."""
    (first, law), (second, _) = steps_of(mechanism, a), steps_of(mechanism, b)
    return sum(abs(x - y) for x, y in zip(first, second, strict=True)) / float(law.scale)


# -- one entry's type must not change the others -----------------------------------------------------------


def test_a_float_in_a_list_does_not_round_the_other_entries():
    laplace = m.Laplace(epsilon=1, sensitivity=0.5)
    assert largest_loss(laplace, [2**60 + 100, 0], [2**60 + 100, 0.5]) <= 1
    assert largest_loss(laplace, (2**60 + 100, 0), (2**60 + 100, 0.5)) <= 1
    assert largest_loss(laplace, [[2**60 + 100], [0]], [[2**60 + 100], [0.5]]) <= 1
    assert largest_loss(laplace, [[2**60 + 100], [0]], [[2**60 + 100], np.array([0.5])]) <= 1
    assert largest_loss(laplace, [1e15 + 0.1, 0], [1e15 + 0.1, 0.5]) <= 1  # floats alone, and among others
    assert largest_loss(laplace, [1e15 + 0.1, Fraction(1, 2)], [1e15 + 0.1, 1.0]) <= 1


@pytest.mark.parametrize("kind", [m.Exponential, m.PermuteAndFlip, m.NoisyMax])
def test_a_float_among_scores_does_not_round_the_others(kind):
    chooser = kind(1, sensitivity=1)
    for scores in (
        [2**60 + 100, 2**60, 0],
        {"a": 2**60 + 100, "b": 2**60, "c": 0},
        [2**60 + 100, 2**60, 0.5],
        {"a": 2**60 + 100, "b": 2**60, "c": 0.5},
        [2**60 + 100, Fraction(2**60), 0],
    ):
        chances = chooser.probabilities(scores)
        first = chances["a"] if isinstance(scores, dict) else chances[0]
        assert first > 0.999


def test_the_sparse_vector_reads_its_answers_one_by_one():
    sparse = m.SparseVector(1000, threshold=2**60 + 50, c=2, sensitivity=1)
    assert sparse.release([2**60 + 100, 2**60, 0.5, 2**60 + 100]) == [True, False, False, True]


@given(
    st.lists(
        st.one_of(
            st.integers(-(2**70), 2**70),
            st.floats(-1e18, 1e18),
            st.fractions(-(10**9), 10**9, max_denominator=1000),
            st.decimals(-(10**9), 10**9, places=3),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_a_list_is_read_as_its_entries_are_read_alone(values):
    grid = Fraction(1, 2**20)
    together = np.asarray(to_steps(read_numbers(values), grid)).tolist()
    assert together == [to_steps(read_numbers(one), grid) for one in values]


# -- values and sensitivity are read alike -----------------------------------------------------------------


def test_a_sensitivity_and_the_values_on_a_grid_have_one_reading():
    laplace = m.Laplace(epsilon=1, sensitivity=0.1, grid=0.1)
    for a, b in ((0.05, -0.05), (-0.05, 0.05), (0.15, 0.05), (0.35, 0.25), (0.25, 0.15)):
        assert largest_loss(laplace, a, b) <= 1
        assert max(abs(laplace.privacy_loss(k / 10, a, b)) for k in range(-20, 20)) <= 1 + 1e-12
    third = m.Laplace(epsilon=1, sensitivity=0.3, grid=0.3)
    assert largest_loss(third, -0.15, -0.45) <= 1
    assert largest_loss(third, Decimal("-0.15"), -0.45) <= 1
    large = m.Laplace(epsilon=1024, sensitivity=2.0**65, grid=1)
    assert largest_loss(large, 0, 2.0**65) <= 1024
    assert largest_loss(large, 0, 2**65) <= 1024


@given(
    st.integers(-(10**6), 10**6),
    st.integers(-(10**4), 10**4),
    st.integers(1, 10**4),
    st.sampled_from([1, 10, 100, 1000, 8, 3]),
)
def test_decimals_that_differ_by_the_sensitivity_move_by_no_more_steps(start, move, part, unit):
    """Floats written as decimals: what differs by s on paper differs by at most ceil(s/g) steps."""
    s = abs(move) / unit or 1.0
    grid = exact("grid", part / unit)
    a, b = start / unit, (start + move) / unit
    if abs(exact_float(a) - exact_float(b)) > exact("s", s):
        return
    for read in (lambda x: to_steps(read_numbers(x), grid), lambda x: to_steps(np.array([x]), grid)[0]):
        assert abs(int(read(a)) - int(read(b))) <= math.ceil(exact("s", s) / grid)


@given(st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=20), st.integers(-40, 40), st.booleans())
def test_arrays_of_floats_have_the_reading_of_single_floats(values, power, decimal):
    grid = Fraction(2) ** power / (10 if decimal else 1)
    middles = [float((k + Fraction(1, 2)) * grid) for k in range(-3, 4)]  # where the reading matters
    numbers = [*values, *middles]
    array = np.asarray(to_steps(np.array(numbers), grid)).tolist()
    assert array == [math.floor(exact_float(x) / grid + Fraction(1, 2)) for x in numbers]


@given(st.lists(st.floats(-1e18, 1e18), min_size=1, max_size=20), st.integers(-60, 0))
def test_many_floats_are_rounded_to_within_one_step(values, power):
    grid = Fraction(2) ** power
    stored = np.asarray(to_steps(np.array(values), grid, many=True)).tolist()
    assert all(abs(k - Fraction(x) / grid) <= 1 for k, x in zip(stored, values, strict=True))
    listed = np.asarray(to_steps(read_numbers(values), grid, many=True, stored=False)).tolist()
    assert all(abs(k - exact_float(x) / grid) <= 1 for k, x in zip(listed, values, strict=True))


@given(
    st.lists(
        st.one_of(
            st.floats(-(2.0**52), 2.0**52),
            st.builds(lambda n, places: n / 10**places, st.integers(-(10**12), 10**12), st.integers(1, 9)),
            st.builds(lambda n, power: n / 2**power, st.integers(-(2**53), 2**53), st.integers(1, 62)),
            st.builds(
                lambda power, to: math.nextafter(2.0**power, to), st.integers(-9, 51), st.floats(-9, 9)
            ),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_the_notation_of_many_floats_lies_where_that_of_each_lies(values):
    values = [x for x in values if not x.is_integer()]
    for x, off in zip(values, beyond_stored(np.array(values)).tolist(), strict=True):
        true = float(exact_float(x) - Fraction(x))
        assert math.isnan(off) or abs(off - true) <= abs(true) * 1e-12


def test_the_notation_of_ordinary_floats_is_found_at_once():
    values = np.array([0.1, -0.3, 1234567.89, 1e12 + 0.3, 2.5, 98765.4321e-3])
    assert not np.isnan(beyond_stored(values)).any()


def test_long_lists_are_read_entry_by_entry_too():
    rows = [[0.1 + k / 1000, float(k % 60), 16.7 + k / 300] for k in range(5000)]
    grid = Fraction(1, 2**56)  # most of them are between 2^54 and 2^62 steps
    steps = np.asarray(to_steps(read_numbers(rows), grid, many=True, stored=False)).tolist()
    for row, near in zip(rows, steps, strict=True):
        assert all(abs(k - exact_float(x) / grid) <= 1 for k, x in zip(near, row, strict=True))
    turned = np.asfortranarray(np.array(rows)[:, :1])
    assert np.array_equal(
        to_steps(turned, grid, many=True, stored=False),
        to_steps(np.ascontiguousarray(turned), grid, many=True, stored=False),
    )
    numbers = list(range(-4000, 6000))
    assert read_integers(numbers).tolist() == numbers
    numbers[5000] = 2**63
    assert read_integers(numbers).tolist() == numbers


@pytest.mark.parametrize("power", [-20, -38, -39, -45])  # below and above 2^54 steps, and above 2^62
def test_lists_of_large_decimals_are_rounded_to_within_one_step_of_what_is_written(power):
    grid = Fraction(2) ** power
    values = [123456.78 + k / 100 for k in range(50)] + [99999.5, -0.1, 2.0**40 + 0.25]
    steps = np.asarray(to_steps(read_numbers(values), grid, many=True, stored=False)).tolist()
    assert all(abs(k - exact_float(x) / grid) <= 1 for k, x in zip(steps, values, strict=True))


@pytest.mark.parametrize(
    "values",
    [
        [2**53 + 1, 0.5],
        [0.5, 2**53 + 1],
        [-(2**53) - 1, 1.5, 3],
        [2**63, 1],
        [2**70, 0.5, 1],
        [10**400, 0.5],
        [np.int64(2**60 + 1), np.float64(0.5)],
        [np.float32(0.1), 1, 0.1],
        [[1, 0.5], [2**60 + 1, 3]],
        [[1, 2], np.array([0.5, 2.0])],
    ],
)
def test_numbers_of_several_types_keep_their_values_in_one_list(values):
    read = np.asarray(read_numbers(values)).ravel().tolist()
    alone = [one for row in values for one in row] if isinstance(values[0], list) else values
    kept = [exact_float(one) if isinstance(one, float) else one for one in read]
    assert kept == [exact_float(one) if isinstance(one, float | np.floating) else int(one) for one in alone]


@pytest.mark.parametrize(
    "values", [[True, 2], [1.0, False], [0.5, math.nan], [1, math.inf], [1, None], [1, [2]], [[1], [2, 3]]]
)
def test_what_is_not_a_number_is_refused_in_every_list(values):
    with pytest.raises(TacitError) as refusal:
        read_numbers(values)
    assert refusal.value.code == "not-finite"


# -- a sparse vector run gives no more than c yeses, whoever asks ------------------------------------------


def test_threads_that_share_a_run_get_no_more_than_c_yeses():
    for _ in range(20):
        run = m.SparseVector(1000, threshold=0, c=3, sensitivity=1, value_epsilon=1000).start()
        said, refused = [], []
        start = threading.Barrier(16)

        def ask(run=run, said=said, refused=refused, start=start):
            start.wait()
            for _ in range(5):
                try:
                    said.append(run.ask(10**6))
                except TacitError as refusal:
                    refused.append(refusal.code)

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(one is not False for one in said) == 3
        assert refused == ["run-spent"] * (16 * 5 - 3)
        assert run.stopped


def test_threads_cannot_pass_the_check_together(monkeypatch):
    """Every thread stands between the check and the answer before any goes on."""
    from tacit.mechanisms import _noise_laws

    run = m.SparseVector(1000, threshold=0, c=1, sensitivity=1).start()
    meeting = threading.Barrier(4)
    draw = _noise_laws.LaplaceLaw.draw

    def slow(law):
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(timeout=0.2)
        return draw(law)

    monkeypatch.setattr(_noise_laws.LaplaceLaw, "draw", slow)
    said = []

    def ask():
        try:
            said.append(run.ask(10**6))
        except TacitError:
            said.append(None)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said.count(True) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_cannot_ask_the_run_of_its_parent():
    run = m.SparseVector(1000, threshold=0, c=1, sensitivity=1).start()
    run._turn.acquire()  # the worst moment: another thread of the parent is asking
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run.ask(10**6)
            told = b"answered"
        except TacitError as refusal:
            told = refusal.code.encode() + b"/" + refusal.what.encode()
        os.write(writing, told)
        os._exit(0)
    run._turn.release()
    os.close(writing)
    told = os.read(reading, 1000)
    os.close(reading)
    os.waitpid(child, 0)
    assert told == b"run-spent/this run was started in another process"
    assert run.ask(10**6) is True


# -- no error and no type separates neighbours -------------------------------------------------------------


@pytest.mark.parametrize("bounds", [(2e10, 2e10 + 1), (-2e10 - 1, -2e10), (1e17, 1e17 + 64), (0, 1e-250)])
@pytest.mark.parametrize("kind", [m.Sum, m.Mean, m.Variance])
def test_no_row_and_one_row_are_released_alike(kind, bounds):
    for mechanism in (kind(epsilon=1, bounds=bounds), kind(rho=1, bounds=bounds)):
        kinds = {type(mechanism.release(rows)) for rows in ([], [bounds[0]], [bounds[1]] * 3, [None, "x"])}
        assert len(kinds) == 1
    if kind is m.Sum:
        mechanism = kind(epsilon=1, bounds=bounds)
        assert abs(mechanism.exact([bounds[1]]) - mechanism.exact([])) <= mechanism.sensitivity


def test_the_type_of_a_release_does_not_depend_on_the_values():
    for noise in (m.DiscreteLaplace(epsilon=1, sensitivity=1), m.DiscreteGaussian(rho=1, sensitivity=1)):
        for values in ([0], [2**62 - 1], [2**62], [2**63 - 1], [2**63], [2**80], [-(2**63)]):
            assert noise.release(values).dtype == object
            assert isinstance(noise.release(values)[0], int)
            assert isinstance(noise.release(values[0]), int)
        for value in (0, 2**62 - 1, 2**62, 2**63 - 1, -(2**63)):
            for _ in range(20):
                noisy = noise.release(np.array([value], dtype=np.int64))
                assert noisy.dtype == np.int64
                assert abs(int(noisy[0]) - value) < 200  # never wrapped around
        for kind in (np.int8, np.uint8, np.int32, np.uint32, np.int64):
            assert noise.release(np.array([1, 2], dtype=kind)).dtype == np.int64
        assert noise.release(np.array([1, 2**63], dtype=np.uint64)).dtype == object
        assert noise.release(np.zeros((0, 3), dtype=np.int64)).dtype == np.int64
        assert noise.release([]).shape == (0,)


@pytest.mark.parametrize("sensitivity", [1, 2.0**-60, 1e-200, 1e200])
def test_arrays_of_zeros_and_of_others_are_released_alike(sensitivity):
    laplace = m.Laplace(epsilon=1, sensitivity=sensitivity)
    for value in (np.zeros(3, dtype=np.int64), np.ones(3, dtype=np.int64), np.zeros(0, dtype=int), [0, 0]):
        assert laplace.release(value).dtype == np.float64


@pytest.mark.parametrize("tiny", ["1e-400", "1e-401", "-1e-401", "1e-5000", "0e-999999", "1e-999999999"])
def test_every_finite_decimal_has_a_meaning(tiny):
    laplace = m.Laplace(epsilon=1, sensitivity=1)
    assert abs(laplace.release(Decimal(tiny))) < 200
    assert abs(laplace.release([Decimal(tiny), 1])[0]) < 200
    huge = Decimal(tiny.replace("e-", "e"))
    if huge:
        assert abs(laplace.release(huge)) == pytest.approx(1.7976931348623157e308)
        assert laplace.release([huge, 1]).dtype == np.float64


@pytest.mark.parametrize("value", [10**308, 10**309, 10**400, -(10**400), 2**5000, Fraction(10**400, 3)])
def test_numbers_beyond_the_largest_float_are_released_as_the_largest_float(value):
    laplace = m.Laplace(epsilon=1, sensitivity=1)
    for released in (laplace.release(value), laplace.release([value, 0])[0]):
        assert math.isfinite(released)
        assert math.copysign(1, released) == (1 if value > 0 else -1)


def test_masked_arrays_are_refused_by_their_type_and_masked_rows_are_missing():
    for mask in (False, [False, True], True):
        masked = np.ma.array([1.0, 900.0], mask=mask)
        for mechanism in (m.Laplace(epsilon=1, sensitivity=1), m.Gaussian(sigma=1, sensitivity=1)):
            with pytest.raises(TacitError, match="masked array"):
                mechanism.release(masked)
        with pytest.raises(TacitError):
            m.DiscreteLaplace(epsilon=1, sensitivity=1).release(masked.astype(np.int64))
    hidden = np.ma.array([3.0, 900.0], mask=[False, True])
    assert m.clip(hidden, 0, 1000).tolist() == [3, 0]
    assert m.Sum(epsilon=1, bounds=(0, 1000)).exact(hidden) == 3
    assert m.Quantile(1, q=0.5, candidates=[0, 3, 900]).exact(hidden).tolist() == [-1, 0, -1]
    for rows in ([1.0, np.ma.masked], ["x", np.ma.masked]):
        assert m.Sum(epsilon=1, bounds=(0, 10), missing=7).exact(rows) in {8, 14}
    assert m.Histogram(epsilon=1, edges=[0, 10, 1000]).exact(hidden).tolist() == [1, 0]


def test_a_survey_takes_answers_from_any_collection_but_no_masked_ones():
    pandas = pytest.importorskip("pandas")
    survey = m.RandomizedResponse(epsilon=50)
    for answers in ([True, False], np.array([True, False]), pandas.Series([True, False], index=[5, 5])):
        assert survey.release(answers).tolist() == [True, False]
        assert survey.estimate(answers).value == pytest.approx(0.5)
    for mask in (False, [False, True]):
        with pytest.raises(TacitError, match="declared categories"):
            survey.release(np.ma.array([True, False], mask=mask))


def test_what_one_row_holds_does_not_change_how_another_is_read():
    total = m.Sum(epsilon=1, bounds=(0, 10), missing=5)
    strange = [
        np.ma.masked,
        np.array(3.0),
        np.array([3.0]),
        [3],
        Decimal("sNaN"),
        2**5000,
        b"3",
        1j,
        object(),
    ]
    for one in strange:
        for other in (1.0, 1, True, "x", None, 2**70, np.float32(1), Fraction(1, 3)):
            alone = total.exact([one]) + total.exact([other])
            assert total.exact([one, other]) == alone, (one, other)


class Loud:
    """A row that raises whatever is done with it."""

    def __float__(self):
        raise RuntimeError

    __hash__ = __eq__ = __gt__ = __float__


def test_no_row_is_heard():
    for mechanism in (
        m.Sum(epsilon=1, bounds=(0, 1)),
        m.Mean(epsilon=1, bounds=(0, 1)),
        m.Variance(epsilon=1, bounds=(0, 1)),
        m.Histogram(epsilon=1, categories=[0, 1]),
        m.Histogram(epsilon=1, edges=[0, 1]),
        m.Quantile(1, q=0.5, candidates=[0, 1]),
        m.Bounds(1),
        m.Count(epsilon=1),
    ):
        for row in (Loud(), Decimal("sNaN"), {}, [], object(), np.array([1, 2])):
            mechanism.release([row, 1.0])


def test_subsampling_takes_rows_by_place_whatever_their_labels():
    pandas = pytest.importorskip("pandas")
    sampled = m.Subsampled(m.Sum(epsilon=1000, bounds=(0, 10)), q=1)
    for rows in (
        pandas.Series([1.0, 2.0, 3.0], index=[10, 20, 30]),
        pandas.Series([3.0, 1.0, 2.0], index=["a", "a", "b"]),
        pandas.Series([1, 2, 3], dtype="Int64"),
        pandas.Series([1.0, 2.0, 3.0], index=[2, 1, 0]),
        (1.0, 2.0, 3.0),
        np.array([1.0, 2.0, 3.0]),
        (x for x in (1.0, 2.0, 3.0)),
        {1.0: "a", 2.0: "b", 3.0: "c"}.keys(),
    ):
        assert sampled.release(rows) == pytest.approx(6, abs=1)
    half = m.Subsampled(m.Count(epsilon=1000), q=0.5)
    assert 400 < half.release(pandas.Series(np.arange(1000.0), index=np.arange(1000, 2000))) < 600


def test_rows_may_be_read_only_once():
    assert m.Count(epsilon=1000).release(x for x in range(50)) == pytest.approx(50, abs=1)
    assert m.Sum(epsilon=1000, bounds=(0, 1), n=3).release(x for x in (1, 1, 1)) == pytest.approx(3, abs=0.1)
    assert m.Histogram(epsilon=1000, categories="ab").release(iter("aab")).tolist() == [2, 1]
    with pytest.raises(TacitError, match="a collection of rows"):
        m.Count(epsilon=1).release(7)


def test_tables_of_several_columns_are_refused_by_their_shape():
    pandas = pytest.importorskip("pandas")
    for table in (np.zeros((3, 2)), pandas.DataFrame({"a": [1, 2], "b": [3, 4]})):
        with pytest.raises(TacitError, match="one value per row"):
            m.Sum(epsilon=1, bounds=(0, 1)).release(table)


@pytest.mark.parametrize("bad", ["no", "yes", 0, 1, None, np.True_])
def test_monotone_is_true_or_false_everywhere(bad):
    for make in (
        lambda: m.Exponential(1, sensitivity=1, monotone=bad),
        lambda: m.PermuteAndFlip(1, sensitivity=1, monotone=bad),
        lambda: m.NoisyMax(1, sensitivity=1, monotone=bad),
        lambda: m.TopK(1, k=2, sensitivity=1, monotone=bad),
        lambda: m.SparseVector(1, threshold=0, sensitivity=1, monotone=bad),
    ):
        with pytest.raises(TacitError, match="monotone must be True or False"):
            make()


@pytest.mark.parametrize(
    "value",
    [
        np.array([True, False]),
        [True, 1],
        np.array(["1"]),
        "12",
        b"12",
        {1, 2},
        (x for x in (1, 2)),
        np.array([1 + 2j]),
        np.array(["2020-01-01"], dtype="M8[D]"),
        [None, 1],
        [[1, 2], 3],
        [math.nan, Fraction(1, 2)],
        np.array([1, math.nan], dtype=object),
        [Decimal("NaN")],
        object(),
    ],
    ids=lambda value: re.sub(r" at 0x\w+", "", repr(value)),
)
def test_what_is_not_a_number_is_refused_in_one_way(value):
    for read in (read_numbers, read_integers):
        with pytest.raises(TacitError) as refused:
            read(value)
        assert refused.value.code == "not-finite"


def test_numbers_of_every_width_are_read_exactly():
    assert read_numbers(np.array([2**63 + 1], dtype=np.uint64)).tolist() == [2**63 + 1]
    assert read_numbers(np.float32(0.1)) == exact_float(float(np.float32(0.1)))
    assert read_numbers(np.array(7)) == 7
    assert read_numbers(np.array([0.1], dtype=np.float32)).dtype == np.float64
    assert read_numbers(-0.0) == 0
    assert str(m.Laplace(epsilon=1e6, sensitivity=1, grid=1).release(-0.0)) == "0.0"
    assert read_numbers([]).shape == (0,)
    assert read_numbers([[], []]).shape == (2, 0)
