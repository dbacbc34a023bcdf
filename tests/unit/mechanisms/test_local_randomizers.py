"""Randomizers at the respondent: exact laws, exact odds, and one decoder for the whole list."""

import hashlib
import json
import math
import time
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as tc
from tacit.accounting import Cost
from tacit.errors import TacitError
from tacit.mechanisms.local._local_randomizer import UNIT_ODDS, largest_odds, log_up

m = tc.mechanisms

LISTS = {
    "Warner": m.SubsetSelection(epsilon=1, size=2),
    "k-ary": m.SubsetSelection(epsilon=1, size=4),
    "subsets": m.SubsetSelection(epsilon=0.5, size=7, subset=3),
    "hashing": m.LinearHashing(epsilon=1, size=6),
    "hashing, one bit": m.LinearHashing(epsilon=0.5, size=3),
}


@pytest.fixture(params=LISTS)
def randomizer(request):
    return LISTS[request.param]


# -- odds


@given(st.fractions(Fraction(1, 10**8), 60))
def test_the_odds_are_the_largest_whole_numbers_within_epsilon(epsilon):
    with localcontext() as context:
        context.prec = 120
        exact = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp() * UNIT_ODDS
        assert largest_odds(epsilon) <= exact < largest_odds(epsilon) + 1


@given(st.fractions(Fraction(1, 10**8), 60))
def test_the_actual_epsilon_is_not_above_what_was_asked_and_hardly_below(epsilon):
    made = m.SubsetSelection(epsilon=epsilon, size=2)
    assert made.asked == epsilon
    assert 0 <= epsilon - made.epsilon <= Fraction(1, UNIT_ODDS - 1)
    with localcontext() as context:
        context.prec = 120
        assert (Decimal(made.odds) / UNIT_ODDS).ln() <= Decimal(made.epsilon.numerator) / Decimal(
            made.epsilon.denominator
        )


def test_the_odds_of_epsilon_1_are_those_that_a_browser_uses():
    assert m.SubsetSelection(epsilon=1, size=5).odds == 11674931554 == math.floor(2**32 * math.e)
    assert 0 < 1 - m.SubsetSelection(epsilon=1, size=5).epsilon < Fraction(5, 10**11)


def test_logarithms_are_rounded_up_also_next_to_1():
    for ratio in (Fraction(3), Fraction(1, 3), 1 + Fraction(1, 2**32), 1 + Fraction(1, 2**400)):
        with localcontext() as context:
            context.prec = 300
            exact = abs((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln())
            above = log_up(ratio)
            found = Decimal(above.numerator) / Decimal(above.denominator)
            assert exact <= found <= exact * (1 + Decimal(10) ** -23)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", 1e-12, 501])
def test_an_epsilon_without_odds_is_refused(bad):
    for make in (
        lambda: m.SubsetSelection(epsilon=bad, size=4),
        lambda: m.LinearHashing(epsilon=bad, size=4),
        lambda: m.NumberWindow(epsilon=bad, steps=4),
        lambda: m.Memo(epsilon=bad, once=0.1),
    ):
        with pytest.raises(TacitError) as refused:
            make()
        assert refused.value.code == "bad-parameter"


@pytest.mark.parametrize(
    "make",
    [
        lambda: m.SubsetSelection(size=4),
        lambda: m.SubsetSelection(epsilon=1, odds=2**33, size=4),
        lambda: m.SubsetSelection(odds=2**32, size=4),
        lambda: m.SubsetSelection(odds=1.5, size=4),
        lambda: m.SubsetSelection(epsilon=1, size=1),
        lambda: m.SubsetSelection(epsilon=1, size=2.0),
        lambda: m.SubsetSelection(epsilon=1, size=4, subset=4),
        lambda: m.SubsetSelection(epsilon=1, size=4, subset=0),
        lambda: m.LinearHashing(epsilon=1, size=1),
        lambda: m.LinearHashing(epsilon=1, size=4, bits=9),
        lambda: m.LinearHashing(epsilon=1, size=2**62),
        lambda: m.NumberWindow(epsilon=1, steps=0),
        lambda: m.NumberWindow(epsilon=1, steps=4, half_width=5),
        lambda: m.NumberWindow(epsilon=1, steps=4, duchi=1),
        lambda: m.NumberWindow(epsilon=1, steps=4, expected=2),
        lambda: m.NumberWindow(epsilon=1, steps=4, expected="none"),
        lambda: m.NumberWindow(epsilon=1, steps=4, expected=None),
        lambda: m.choose_randomizer(1, 1),
        lambda: m.randomizer_from_json({"mechanism": "laplace"}),
        lambda: m.randomizer_from_json({"mechanism": "subset-selection"}),
        lambda: m.randomizer_from_json(
            {"mechanism": "subset-selection", "size": 3, "subset": 1, "odds": "x"}
        ),
        lambda: m.randomizer_from_json(
            {"mechanism": "subset-selection", "size": "3", "subset": 1, "odds": "9"}
        ),
        lambda: m.randomizer_from_json({"mechanism": "response-design", "no": 1, "yes": 2, "name": "x"}),
        lambda: m.randomizer_from_json(["subset-selection"]),
        lambda: m.Memo(epsilon=1, once=1),
        lambda: m.Memo(epsilon=1, once=2),
    ],
)
def test_parameters_without_a_meaning_are_refused(make):
    with pytest.raises(TacitError) as refused:
        make()
    assert refused.value.code == "bad-parameter"


# -- the law


def reports_of(made):
    """Every report that can be drawn."""
    if isinstance(made, m.SubsetSelection):
        return [list(one) for one in combinations(range(made.size), made.subset)]
    words = range(2**made.words)
    return [
        {"seed": list(seed), "answer": answer}
        for seed in product(words, repeat=made.bits)
        for answer in range(2**made.bits)
    ]


def test_the_stated_law_is_private_adds_up_and_has_the_stated_p_and_q(randomizer):
    """By brute force over every report, in exact arithmetic."""
    reports = reports_of(randomizer)
    seeds = 1 if isinstance(randomizer, m.SubsetSelection) else 2 ** (randomizer.words * randomizer.bits)
    table = randomizer.read_reports(reports)
    held = [randomizer.supported(table, answer) for answer in range(randomizer.size)]
    laws = [
        [randomizer.probability(report, truth=truth) / seeds for report in reports]
        for truth in range(randomizer.size)
    ]
    limit = Fraction(randomizer.odds, UNIT_ODDS)
    for truth, law in enumerate(laws):
        assert sum(law) == 1
        for answer in range(randomizer.size):
            support = sum(chance for chance, yes in zip(law, held[answer], strict=True) if yes)
            assert support == (randomizer.p if answer == truth else randomizer.q)
    ratios = [a / b for first in laws for second in laws for a, b in zip(first, second, strict=True)]
    assert max(ratios) == limit
    assert log_up(limit) == randomizer.epsilon
    assert randomizer.cost.epsilon(delta=0) == pytest.approx(float(randomizer.epsilon), rel=1e-12)
    assert randomizer.cost.adjacency == "replace"


@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize("size", [2, 3, 5, 7])
def test_hashes_of_different_answers_are_exactly_independent(size, bits):
    """Over all seeds, every pair of hashes is equally frequent; this fails for the code 0."""
    made = m.LinearHashing(epsilon=1, size=size, bits=bits)
    seeds = np.array(list(product(range(2**made.words), repeat=bits)), np.uint32)
    reports = np.zeros(len(seeds), made.dtype)
    reports["seed"] = seeds
    hashes = np.zeros((size, len(seeds)), int)
    for value in range(2**bits):
        reports["answer"] = value
        for answer in range(size):
            hashes[answer][made.supported(reports, answer)] = value
    for a, b in combinations(range(size), 2):
        pairs = Counter(zip(hashes[a].tolist(), hashes[b].tolist(), strict=True))
        assert set(pairs.values()) == {len(seeds) // 4**bits}
        assert len(pairs) == 4**bits


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_the_transform_counts_what_a_loop_over_answers_counts(bits):
    made = m.LinearHashing(epsilon=1, size=37, bits=bits)
    reports = made.release(np.arange(500) % 37)
    slow = [int(made.supported(reports, answer).sum()) for answer in range(37)]
    assert made.supports(reports).tolist() == slow
    assert made.supports(reports).dtype == np.int64


def test_the_transform_counts_blocks_like_a_whole(monkeypatch):
    from tacit.mechanisms.local import _linear_hashing

    made = m.LinearHashing(epsilon=1, size=9)
    reports = made.release(np.arange(1000) % 9)
    whole = made.supports(reports)
    monkeypatch.setattr(_linear_hashing, "_BLOCK", 7)
    assert made.supports(reports).tolist() == whole.tolist()


@given(st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_the_walsh_hadamard_transform_is_the_sum_over_signs(bits, seed):
    table = np.random.default_rng(seed).integers(-1000, 1000, 2**bits)
    places = np.arange(2**bits)
    signs = 1 - 2 * (np.bitwise_count(places[:, None] & places).astype(int) & 1)
    slow = signs @ table
    m.walsh_hadamard(table)
    assert table.tolist() == slow.tolist()


def test_draws_follow_the_stated_law(randomizer):
    """Chi-square over all supports, at a level of 1e-9."""
    from scipy.stats import chi2

    n = 60_000
    for truth in (0, randomizer.size - 1):
        found = randomizer.supports(randomizer.release(np.full(n, truth)))
        wanted = np.full(randomizer.size, float(randomizer.q))
        wanted[truth] = float(randomizer.p)
        square = (found - n * wanted) ** 2 / (n * wanted * (1 - wanted))
        assert square.max() < chi2.isf(1e-9 / randomizer.size, 1)


@pytest.mark.parametrize(("size", "subset"), [(5, 2), (6, 3), (4, 3), (30, 2)])
def test_every_subset_is_drawn_with_its_probability(size, subset):
    from scipy.stats import chi2

    made, n = m.SubsetSelection(epsilon=1, size=size, subset=subset), 80_000
    for truth in (0, 2, size - 1):
        drawn = made.release(np.full(n, truth))
        assert (np.diff(drawn, axis=1) > 0).all()
        found = Counter(map(tuple, drawn.tolist()))
        cells = [(made.probability(list(one), truth=truth), found[one]) for one in reports_as_tuples(made)]
        square = sum((hits - n * float(p)) ** 2 / (n * float(p)) for p, hits in cells)
        assert square < chi2.isf(1e-9, len(cells) - 1)


def reports_as_tuples(made):
    return list(combinations(range(made.size), made.subset))


@pytest.mark.parametrize("size", [40, 2000])
def test_both_ways_to_draw_a_subset_give_every_answer_alike(size):
    from scipy.stats import chi2

    from tacit.mechanisms.local._subset_selection import subsets

    n, w = 20_000, 12
    for with_truth in (True, False):
        drawn = subsets(np.full(n, 3), size, w, with_truth=with_truth)
        assert (np.diff(drawn, axis=1) > 0).all()
        found = np.bincount(drawn.ravel(), minlength=size)
        assert found[3] == (n if with_truth else 0)
        chance = (w - with_truth) / (size - 1)
        others = np.delete(found, 3)
        square = ((others - n * chance) ** 2).sum() / (n * chance * (1 - chance)) * (size - 2) / (size - 1)
        assert chi2.isf(1 - 1e-9, size - 2) < square < chi2.isf(1e-9, size - 2)


# -- the table of the design


@pytest.mark.parametrize(
    ("epsilon", "sizes"),
    [
        (0.5, {2: 3.918, 4: 8.670, 10: 12.57, 51: 15.02, 100: 15.34, 1000: 15.64}),
        (1, {2: 0.9207, 4: 1.598, 10: 2.822, 51: 3.503, 100: 3.590, 1000: 3.673}),
        (2, {2: 0.1810, 4: 0.2300, 10: 0.3770, 51: 0.6568, 100: 0.6899, 1000: 0.7206}),
        (4, {2: 0.0190, 4: 0.0197, 10: 0.0218, 51: 0.0361, 100: 0.0531, 1000: 0.0739}),
    ],
)
def test_the_variance_of_subset_selection_is_that_of_the_literature(epsilon, sizes):
    for size, wanted in sizes.items():
        made = m.SubsetSelection(epsilon=epsilon, size=size)
        assert made.variance(0, 1, sampling=False) == pytest.approx(wanted, abs=6e-5, rel=4e-4)


@pytest.mark.parametrize(("epsilon", "bits", "wanted"), [(0.5, 1, 16.67), (1, 2, 3.692), (2, 3, 0.7246)])
def test_the_variance_of_linear_hashing_is_that_of_the_literature(epsilon, bits, wanted):
    made = m.LinearHashing(epsilon=epsilon, size=10**6)
    assert made.bits == bits
    assert made.variance(0, 1, sampling=False) == pytest.approx(wanted, rel=4e-4)


def test_the_subset_with_the_smallest_variance_is_taken():
    for epsilon in (0.3, 1, 2.5):
        for size in (2, 3, 5, 12, 51, 200):
            best = m.SubsetSelection(epsilon=epsilon, size=size)
            others = [m.SubsetSelection(epsilon=epsilon, size=size, subset=w) for w in range(1, size)]
            least = min(other.variance(0, 1, sampling=False) for other in others)
            assert best.variance(0, 1, sampling=False) == least


def test_fifty_one_states_have_the_stated_standard_deviation():
    states = m.choose_randomizer(1, 51)
    assert states.describe() == "subset selection, 13 of 51 answers"
    assert states.variance(0, 64_600, sampling=False) ** 0.5 == pytest.approx(0.00736, abs=5e-6)
    hashing = m.LinearHashing(epsilon=1, size=51)
    assert hashing.variance(0, 64_600, sampling=False) ** 0.5 == pytest.approx(0.00756, abs=5e-6)


def test_sampling_adds_the_variance_of_a_share(randomizer):
    coins = randomizer.variance(0.3, 100, sampling=False)
    assert randomizer.variance(0.3, 100, sampling=True) == pytest.approx(coins + 0.3 * 0.7 / 100)
    p, q = float(randomizer.p), float(randomizer.q)
    rate = q + 0.3 * (p - q)
    assert randomizer.variance(0.3, 100, sampling=True) == pytest.approx(
        rate * (1 - rate) / 100 / (p - q) ** 2
    )


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (m.SubsetSelection(epsilon=1, size=2), 1.58),
        (m.SubsetSelection(epsilon=1, size=51, subset=1), 30),
        (m.LinearHashing(epsilon=1, size=1000), 3.3),
    ],
)
def test_liars_have_the_stated_pull(made, wanted):
    assert made.liar_factor == pytest.approx(wanted, rel=0.02)


def test_the_choice_follows_the_variance_and_says_why():
    assert m.choose_randomizer(1, 4).subset == 1
    assert m.choose_randomizer(1, 51).subset == 13
    assert isinstance(m.choose_randomizer(1, 10**6), m.LinearHashing)
    assert isinstance(m.choose_randomizer(0.5, 100), m.LinearHashing)  # subsets of 38 answers are too long
    assert m.choose_randomizer(1, 51).why == (
        "subset selection, 13 of 51 answers: variance 3.502/n for a rare answer; "
        "linear hashing of 51 answers to 4 values: 3.692/n; randomized response among 51 answers: 17.52/n"
    )
    assert "would name 269 answers in each report" in m.choose_randomizer(1, 1000).why


# -- documents


@pytest.mark.parametrize(
    "made",
    [
        *LISTS.values(),
        m.NumberWindow(epsilon=1, steps=10),
        m.NumberWindow(epsilon=1, steps=10, expected="any"),
        m.NumberWindow(epsilon=0.5, steps=10),
        m.NumberWindow(epsilon=1, steps=10, duchi=False),
        m.NumberWindow(epsilon=4, steps=2),
        m.Memo(epsilon=2, once=1, size=3),
        m.Design.kuk(0.8, 0.2, draws=3),
        m.Design.mangat(0.7),
    ],
    ids=repr,
)
def test_a_document_rebuilds_the_randomizer(made):
    document = json.loads(json.dumps(made.to_json()))
    again = m.randomizer_from_json(document)
    assert again == made
    assert again.to_json() == document
    assert hash(again) == hash(made)
    assert repr(again) == repr(made)


def test_a_document_has_the_fields_that_forms_read():
    document = m.SubsetSelection(epsilon=1, size=5, subset=2).to_json()
    cost = document.pop("cost")
    assert document == {"mechanism": "subset-selection", "size": 5, "subset": 2, "odds": "11674931554"}
    assert Cost.from_json(cost) == m.SubsetSelection(epsilon=1, size=5, subset=2).cost
    document = m.LinearHashing(epsilon=1, size=1000).to_json()
    del document["cost"]
    assert document == {
        "mechanism": "linear-hashing", "size": 1000, "words": 10, "bits": 2, "odds": "11674931554",
    }  # fmt: skip


def test_only_plain_randomized_response_is_charged_as_such():
    """The proof of shuffling for k-ary response holds for k-ary response, not for subsets or hashes."""
    one = m.SubsetSelection(epsilon=1, size=5)
    assert one.cost == Cost.randomized_response(one.epsilon, categories=5, adjacency="replace")
    assert LISTS["Warner"].cost == Cost.randomized_response(one.epsilon, adjacency="replace")
    for made in (LISTS["subsets"], LISTS["hashing"]):
        assert made.cost == Cost.pure(made.epsilon, adjacency="replace")


# -- what goes in and what comes out


def test_one_answer_gives_a_report_that_is_plain_json(randomizer):
    report = randomizer.release(1)
    assert json.loads(json.dumps(report)) == report
    assert randomizer.supports([report, report]).sum() % 2 == 0
    assert randomizer.read_reports([report]).shape[0] == 1


@pytest.mark.parametrize(
    "values",
    [
        [0, 1, 1],
        (0, 1, 1),
        np.array([0, 1, 1], np.uint8),
        np.array([0.0, 1.0, 1.0]),
        pd.Series([0, 1, 1]),
        pd.Series([0, 1, 1], index=[9, 9, 9]),
        pd.Series([0, 1, 1], dtype="Int64"),
        pd.Series([0.0, 1.0, 1.0]),
        np.array([0, 1, 1], object),
        range(2),
    ],
    ids=lambda v: f"{type(v).__name__} {getattr(v, 'dtype', '')}",
)
def test_answers_of_every_container_are_read(randomizer, values):
    assert len(randomizer.release(values)) == len(values)


def test_booleans_are_answers_to_yes_or_no_only():
    assert LISTS["Warner"].release([True, False]).shape == (2, 1)
    assert LISTS["Warner"].release(True) in ([0], [1])
    assert LISTS["Warner"].release(pd.Series([True, False], dtype=object)).shape == (2, 1)
    for values in ([True, False], np.array([True, False], object), np.array([True, 1], object)):
        with pytest.raises(TacitError, match="declared answers"):
            LISTS["k-ary"].release(values)
    with pytest.raises(TacitError, match="declared answers"):
        LISTS["Warner"].release(pd.Series([True, None]))


BAD_ANSWERS = [
    [0, 9],
    [0, -1],
    [0, 0.5],
    [0, math.nan],
    [0, None],
    [0, "1"],
    ["no", "yes"],
    [[0], [1]],
    [0, math.inf],
    [0, 1j],
    np.ma.array([0, 1], mask=[False, True]),
    np.ma.array([0, 1], mask=False),
    pd.Series([0, None]),
    pd.Series([0, pd.NA], dtype="Int64"),
    pd.Series([0, pd.NaT]),
    [0, 2**70],
    [[0], [1, 1]],
    np.array(["2020-01-01"], "datetime64[D]"),
    None,
    "1",
    9,
    {1},
]


@pytest.mark.parametrize("values", BAD_ANSWERS, ids=lambda v: repr(v)[:40])
def test_an_unknown_answer_is_refused_without_showing_it(randomizer, values):
    with pytest.raises(TacitError) as refused:
        randomizer.release(values)
    assert refused.value.code == "unknown-category"
    assert str(refused.value) == str(_refusal(randomizer))


def _refusal(randomizer):
    with pytest.raises(TacitError) as refused:
        randomizer.release([10**6])
    return refused.value


def test_nobody_and_one_person_are_released_alike(randomizer):
    for values in ([], np.array([], int), pd.Series([], dtype=float)):
        empty = randomizer.release(values)
        assert len(empty) == 0
        assert empty.dtype == randomizer.release([1]).dtype
        assert empty.shape[1:] == randomizer.release([1]).shape[1:]
        assert randomizer.supports(empty).tolist() == [0] * randomizer.size
    assert randomizer.supports([]).tolist() == [0] * randomizer.size


@pytest.mark.parametrize(
    "reports",
    [
        [[0, 1]],
        [[0, 1, 2, 3]],
        [[0, 1, 7]],
        [[-1, 1, 2]],
        [[0, 1, 1]],
        [[2, 1, 0]],
        [[0, 1, 2.0]],
        [[0, 1, None]],
        [[0, 1, 2], [0, 1]],
        [0, 1, 2],
        ["012"],
        [[True, False, True]],
        np.ma.array([[0, 1, 2]], mask=[[0, 0, 1]]),
        None,
        [{"seed": [1], "answer": 0}],
    ],
    ids=repr,
)
def test_a_subset_that_cannot_be_drawn_is_not_counted(reports):
    with pytest.raises(TacitError) as refused:
        LISTS["subsets"].supports(reports)
    assert refused.value.code == "bad-report"


@pytest.mark.parametrize(
    "reports",
    [
        [{"seed": [1], "answer": 0}],
        [{"seed": [1, 2, 3], "answer": 0}],
        [{"seed": [1, 8], "answer": 0}],
        [{"seed": [1, -1], "answer": 0}],
        [{"seed": [1, 1], "answer": 4}],
        [{"seed": [1, 1], "answer": -1}],
        [{"seed": [1, 1], "answer": 0.5}],
        [{"seed": [1, 1], "answer": None}],
        [{"seed": [1, 1]}],
        [{"answer": 1}],
        [[1, 1, 0]],
        [3],
        3,
        None,
        [{"seed": [1, 1], "answer": 0}, {"seed": [1], "answer": 0}],
        np.ma.array(LISTS["hashing"].release([1]), mask=True),
    ],
    ids=repr,
)
def test_a_hash_that_cannot_be_drawn_is_not_counted(reports):
    with pytest.raises(TacitError) as refused:
        LISTS["hashing"].supports(reports)
    assert refused.value.code == "bad-report"


def test_seeds_come_from_the_invitation_and_are_the_same_everywhere():
    made = m.LinearHashing(epsilon=1, size=1000)
    seeds = made.seeds_for(["A-1", 2], label="words 2026")
    digest = hashlib.sha256(b"words 2026\nA-1\n0").digest()
    assert seeds[0].tolist() == [int.from_bytes(digest[4 * j : 4 * j + 4], "big") % 1024 for j in (0, 1)]
    reports = made.release([5, 6], seeds=seeds)
    assert reports["seed"].tolist() == seeds.tolist()
    with pytest.raises(TacitError, match="declared answers"):
        made.release({"seed": [1, 2]})
    one = made.release({"value": 5, "seed": seeds[0].tolist()})
    assert one["seed"] == seeds[0].tolist()
    assert made.seeds_for([]).shape == (0, 2)
    assert (made.seeds_for(["A-1"]) != seeds[0]).any()
    wide = m.LinearHashing(epsilon=4, size=2**40)
    assert wide.seeds_for(["x"]).shape == (1, wide.bits)
    assert wide.seeds_for(["x"]).max() < 2**wide.words


def test_seeds_of_another_form_are_refused():
    made = m.LinearHashing(epsilon=1, size=1000)
    for seeds in ([[1, 2]], [[1, 2], [1, 1024]], [[1, 2, 3]] * 2, [[1.0, 2.0]] * 2, "ab"):
        with pytest.raises(TacitError) as refused:
            made.release([5, 6], seeds=seeds)
        assert refused.value.code == "bad-report"


def test_a_list_too_long_for_one_transform_is_still_hashed():
    made = m.LinearHashing(epsilon=2, size=2**48)
    reports = made.release(np.full(3000, 2**47 + 5, object))
    assert made.supported(reports, 2**47 + 5).mean() == pytest.approx(float(made.p), abs=0.06)
    assert made.supported(reports, 77).mean() == pytest.approx(float(made.q), abs=0.06)
    with pytest.raises(TacitError, match="below 2\\^26"):
        made.supports(reports)


def test_the_release_for_auditors_shows_the_telling_event(randomizer):
    rows = randomizer.release_many(0, 5000)
    assert set(np.unique(rows[:, 0])) <= {-1, 0, 1}
    assert (rows[:, 0] == 1).sum() > (rows[:, 0] == -1).sum()


# -- speed


def seconds(call):
    best = math.inf
    for _ in range(3):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.long
def test_a_million_reports_are_drawn_and_decoded_quickly():
    n = 10**6
    small = np.arange(n) % 5
    assert seconds(lambda: m.SubsetSelection(epsilon=1, size=5).release(small)) < 0.1
    wide = m.SubsetSelection(epsilon=1, size=117)
    assert wide.subset == 31
    assert seconds(lambda: wide.release(np.arange(n) % 117)) < 1.5
    for size, limit in ((1000, 0.1), (10**6, 1)):
        words = m.LinearHashing(epsilon=1, size=size)
        reports = words.release(np.arange(n) % size)
        assert seconds(lambda words=words, size=size: words.release(np.arange(n) % size)) < 0.2
        assert seconds(lambda words=words, reports=reports: words.supports(reports)) < limit
