"""The graphical model agrees with the full joint distribution, and its fit is total."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.synth import NoisyTable, fit
from tacit.synth._fit import total_of
from tacit.synth._model import junction_tree, model_of, spread, summed, tree_cells
from tacit.synth._rows import draw_codes, gradual_codes, nonnegative


def random_sets(rng, columns):
    return [
        tuple(sorted(rng.choice(columns, rng.integers(1, min(columns, 3) + 1), replace=False).tolist()))
        for _ in range(rng.integers(1, 7))
    ]


def joint_of(potentials, zeros, sizes, total):
    every = range(len(sizes))
    full = sum((spread(one, columns, every) for columns, one in potentials.items()), np.zeros(sizes))
    full = np.exp(full - full.max())
    for columns, mask in zeros.items():
        full = full * spread((~mask).astype(float), columns, every)
    return full * (total / full.sum()) if full.sum() > 0 else None


@pytest.mark.parametrize("seed", range(40))
def test_every_table_of_a_model_is_that_of_the_full_joint(seed):
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in rng.integers(1, 5, rng.integers(2, 6))]
    sets = random_sets(rng, len(sizes))
    potentials = {one: 3 * rng.normal(size=[sizes[c] for c in one]) for one in sets}
    zeros = {sets[0]: rng.random([sizes[c] for c in sets[0]]) < 0.4} if seed % 2 else {}
    full = joint_of(potentials, zeros, sizes, 100.0)
    model = model_of(potentials, zeros, sizes, 100.0)
    if full is None:
        assert model is None
        return
    for width in range(len(sizes) + 1):
        for columns in itertools.permutations(range(len(sizes)), width):
            wanted = summed(full, range(len(sizes)), columns)
            wanted = wanted.transpose([sorted(columns).index(c) for c in columns])
            assert np.abs(model.table(columns) - wanted).max() < 1e-11  # 1e-13 of the total


@pytest.mark.parametrize("seed", range(30))
def test_a_junction_tree_holds_every_set_and_has_the_running_intersection(seed):
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in rng.integers(2, 9, 8)]
    sets = random_sets(rng, 8)
    tree = junction_tree(sets, sizes)
    assert all(tree.home(one) is not None for one in sets)
    assert {c for clique in tree.cliques for c in clique} == set(range(8))
    assert tree_cells(sets, sizes) == sum(int(np.prod([sizes[c] for c in q])) for q in tree.cliques)
    for place, (parent, separator) in enumerate(zip(tree.parents, tree.separators, strict=True)):
        assert parent < place
        earlier = {c for clique in tree.cliques[:place] for c in clique}
        # what a clique shares with all earlier ones, it shares with its parent
        assert set(tree.cliques[place]) & earlier == set(separator)
        assert place == 0 or set(separator) <= set(tree.cliques[parent])


def test_a_fit_to_exact_tables_reproduces_them():
    rng = np.random.default_rng(3)
    truth = rng.integers(1, 60, (3, 4, 2, 3)).astype(float)
    tables = [
        NoisyTable(c, summed(truth, range(4), c), s) for c, s in [((0, 1), 1.0), ((1, 2), 5.0), ((3,), 9)]
    ]
    model = fit(tables, truth.shape, steps=3000).model
    for table in tables:
        assert np.abs(model.table(table.columns) - table.counts).max() < 1e-2
    # columns that no table ties together are independent
    apart = np.multiply.outer(model.table((0,)), model.table((3,))) / model.total
    assert np.allclose(model.table((0, 3)), apart)


@settings(max_examples=60, deadline=None)
@given(
    cells=st.lists(st.integers(-(2**52), 2**52), min_size=9, max_size=9),
    sigma=st.sampled_from([0.5, 3.0, 1e6, 1e14]),
    rows=st.integers(0, 50),
)
def test_a_fit_and_its_rows_are_total(cells, sigma, rows):
    table = np.array(cells, float).reshape(3, 3)
    never = np.zeros((3, 3), bool)
    never[0, 0] = never[2, 1] = True
    tables = [NoisyTable((0, 1), table, sigma), NoisyTable((1, 2), table.T, 2 * sigma)]
    model = fit(tables, (3, 3, 3), {(0, 1): never}, steps=40).model
    for belief in model.beliefs:
        assert np.isfinite(belief).all()
        assert (belief >= 0).all()
    codes = draw_codes(model, rows, np.random.default_rng(0))
    assert codes.shape == (rows, 3)
    assert ((codes >= 0) & (codes < 3)).all()
    assert not never[codes[:, 0], codes[:, 1]].any()
    gradual = gradual_codes(tables, (3, 3, 3), rows, np.random.default_rng(0))
    assert gradual.shape == (rows, 3)
    assert ((gradual >= 0) & (gradual < 3)).all()


def test_rows_agree_with_the_model_almost_without_sampling_error():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 40, (4, 5, 3)).astype(float)
    tables = [NoisyTable((0, 1), truth.sum(2), 1.0), NoisyTable((1, 2), truth.sum(0), 1.0)]
    model = fit(tables, truth.shape, steps=3000).model
    codes = draw_codes(model, round(model.total), np.random.default_rng(1))
    counted = np.zeros((4, 5))
    np.add.at(counted, (codes[:, 0], codes[:, 1]), 1)
    assert np.abs(counted - model.table((0, 1))).max() < 2.5  # independent rows would be off by about 6


def test_gradual_rows_agree_with_their_tables():
    rng = np.random.default_rng(7)
    truth = rng.gamma(0.5, 100, (5, 4, 6))
    tables = [NoisyTable(c, summed(truth, range(3), c), 1.0) for c in [(0, 1), (1, 2), (0, 2)]]
    rows = round(total_of(tables))
    codes = gradual_codes(tables, truth.shape, rows, np.random.default_rng(1))
    for table in tables:
        counted = np.zeros(table.counts.shape)
        np.add.at(counted, tuple(codes[:, c] for c in table.columns), 1)
        assert np.abs(counted - table.counts).sum() / 2 / rows < 0.02


def test_the_projection_keeps_the_total_and_is_nearest():
    rng = np.random.default_rng(1)
    for _ in range(20):
        counts = rng.normal(1, 4, 12)
        made = nonnegative(counts, 10.0)
        assert made.min() >= 0
        assert made.sum() == pytest.approx(10)
        others = rng.dirichlet(np.ones(12), 200) * 10
        assert ((others - counts) ** 2).sum(1).min() >= ((made - counts) ** 2).sum() - 1e-9


def test_the_total_is_the_mean_by_precision():
    tables = [NoisyTable((0,), np.array([10.0, 20.0]), 1.0), NoisyTable((1,), np.array([40.0] * 2), 3.0)]
    assert total_of(tables) == pytest.approx((30 / 2 + 80 / 18) / (1 / 2 + 1 / 18))


def test_weights_that_almost_vanish_leave_finite_tables():
    """What can never be takes all large weights of a clique: those that are left are near the least float."""
    far = np.array([[0.0, -710.0], [0.0, -710.0]])
    zeros = {(2,): np.array([True, False])}
    with np.errstate(all="raise", under="ignore"):
        made = model_of({(0, 1): far, (1, 2): far, (2, 3): np.zeros((2, 2))}, zeros, (2,) * 4, 1e6)
        assert made is not None
        tables = [*made.beliefs, made.table((0, 3)), made.table((0, 2))]
    assert [one.sum() for one in tables] == pytest.approx([1e6] * len(tables))


@pytest.mark.parametrize("never", ["a pair", "three columns", "nearly all"])
def test_gradual_rows_never_have_what_was_declared_impossible(never):
    """Also where no measured table holds the combination, and where the noisy tables want it."""
    sizes, rng = (3, 3, 3), np.random.default_rng(3)
    pairs = [(0, 1), (0, 2), (1, 2)]
    tables = [NoisyTable(c, rng.normal(100, 40, (3, 3)), 40.0) for c in pairs]
    blocked = np.zeros((3, 3, 3) if never != "a pair" else (3, 3), bool)
    if never == "nearly all":
        blocked[:] = True
        blocked[2, 0, 1] = False
        tables = [NoisyTable(c, np.where(np.eye(3), 500.0, -50.0), 40.0) for c in pairs]
    else:
        blocked[(0,) * blocked.ndim] = blocked[(1,) * blocked.ndim] = True
    columns = (0, 2) if never == "a pair" else (0, 1, 2)
    codes = gradual_codes(tables, sizes, 900, np.random.default_rng(0), {columns: blocked})
    assert codes.shape == (900, 3)
    assert not blocked[tuple(codes[:, c] for c in columns)].any()


def test_a_model_with_next_to_nothing_in_a_separator_gives_finite_tables():
    away = np.array([[0.0, 0.0], [-730.0, -725.0]])  # its exponential is next to nothing
    model = model_of({(0, 1): away, (0, 2): np.zeros((2, 2))}, {}, (2, 2, 2), 100.0)
    assert model is not None
    with np.errstate(all="raise", under="ignore"):
        for pair in itertools.combinations(range(3), 2):
            assert np.isclose(model.table(pair).sum(), 100.0)


def test_tables_across_cliques_need_little_memory():
    """A model that AIM made of Adult: products of cliques in the order of the tree would take 157 MB."""
    sizes = [16, 10, 8, 11, 17, 8, 8, 15, 7, 6, 3, 42, 3]
    cliques = [
        (0, 6, 8, 10, 12), (3, 6, 8, 10, 12), (3, 7, 8, 10, 12), (3, 5, 7, 10, 12), (4, 7, 8, 10, 12),
        (7, 8, 9, 12), (1, 8, 12), (1, 2, 12), (9, 11),
    ]  # fmt: skip
    rng = np.random.default_rng(8)
    model = model_of({c: rng.normal(size=[sizes[i] for i in c]) for c in cliques}, {}, sizes, 1000.0)
    held = sum(belief.nbytes for belief in model.beliefs)
    tracemalloc.start()
    try:
        sums = [model.table(c).sum() for c in itertools.combinations(range(len(sizes)), 3)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.allclose(sums, 1000.0)
    assert peak < 20 * held
