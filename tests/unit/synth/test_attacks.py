"""Synthetic rows refuse questions and documents that would take all time or memory, quickly."""

import copy
import json
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.mechanisms import AdaptiveTables
from tacit.synth._choices import SteppedTables, SynthDesign, steps_of
from tacit.tables import CodedRows


def wide(columns, values=2):
    names = [f"c{i}" for i in range(columns)]
    keys = {name: [f"v{j}" for j in range(values)] for name in names}
    rows = {name: ["v0"] * 3 for name in names}
    table = pa.table({"id": [1, 2, 3], **rows})
    data = tc.protect(
        table, unit="id", limits={"rows": 1}, keys=keys, budget=tc.Budget(epsilon=100, delta=1e-3)
    )
    return data, names


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (100, {"method": "aim", "up_to": 3}),  # 166,750 tables
        (60, {"method": "aim"}),
        (40, {"up_to": 20}),  # 10^12 tables
        (30, {"method": "tables", "up_to": 10}),
        (200, {"method": "mst"}),
    ],
)
def test_more_tables_than_can_be_compared_are_refused_at_once(columns, options):
    data, names = wide(columns)
    with pytest.raises(TacitError, match=r"columns have .* tables") as refused:
        data.synthesize(names, **options)
    assert refused.value.code == "question-too-large"


def test_what_the_refusal_of_100_columns_advises_works():
    data, names = wide(100)
    plan = data.synthesize(names, method="mst").plan(epsilon=1, delta=1e-9)
    assert "99 of them" in str(plan)


def test_a_table_that_has_no_room_is_refused_before_the_charge():
    data, names = wide(3, values=1000)
    with pytest.raises(TacitError, match="1,003,003,001 cells"):
        data.synthesize(names, method="tables", up_to=3)


def test_the_weight_of_a_table_is_what_it_shares_with_the_wanted_ones():
    for columns, wide_ in ((5, 3), (4, 4), (6, 1)):
        found = SynthDesign((2,) * columns, "aim", wide_, 100).workload()
        wanted = [set(c) for c in combinations(range(columns), wide_)]
        assert found == {c: sum(len(one & set(c)) for one in wanted) for c in found}


@pytest.fixture(scope="module")
def document():
    data, names = wide(3, values=3)
    asked = data.synthesize(names, method="aim", never=[{"c0": "v0", "c1": "v1"}])
    written = json.loads(json.dumps(asked.plan(epsilon=1, delta=1e-9).release().to_json()))
    del written["certificate"]["values"]  # as in older documents, whose values nothing binds
    return written


def changed(document, path, value):
    made = copy.deepcopy(document)
    *way, last = path
    inner = made["content"]
    for part in way:
        inner = inner[part]
    inner[last] = value
    return made


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("steps", 0, 2), "1e999999999"),
        (("steps", 0, 2), 1e308),
        (("steps", 0, 2), "1" + "0" * 1000),
        (("steps", 0, 3, 0), 10**400),
        (("design", "size"), 10**18),
        (("design", "sizes"), [10**9] * 3),
        (("design", "never"), [[[0, 1, 2], list(range(64))]]),
        (("columns", 0, "cuts"), "1e9"),
        (("columns", 0, "cuts"), ["1", "x"]),
        (("columns", 0, "cuts"), [0, 2, 1]),
        (("columns", 0, "cuts"), [0, float("inf")]),
        (("columns", 0, "name"), "c1"),
        (("confidence",), float("nan")),
    ],
)
def test_forged_documents_are_refused(document, path, value):
    tc.Release.from_json(document).to_csv(rows=5)
    with pytest.raises(TacitError) as refused:
        tc.Release.from_json(changed(document, path, value))
    assert refused.value.code == "bad-release"


class ExtremeNoise:
    """Steps that get what an adversary chooses instead of noisy results."""

    def __init__(self, steps, design, by):
        self.source = SteppedTables(
            CodedRows(design.sizes, np.zeros((1, len(design.sizes)), np.int32), np.ones(1, np.int64)), steps
        )
        self.by, self.table, self.next_step = by, self.source.table, self.source.next_step

    def receive(self, result):
        if np.ndim(result):
            result = self.by(np.asarray(result))
        self.source.receive(result)


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize("method", ["aim", "mst"])
@pytest.mark.parametrize(
    "noise",
    [
        lambda t: np.full_like(t, -(2**45)),
        lambda t: np.full_like(t, 2**45),
        np.zeros_like,
        lambda t: np.where(np.arange(t.size).reshape(t.shape) % 2, 2**45, -(2**45)),
        lambda t: np.random.default_rng(t.size).integers(-(10**9), 10**9, t.shape),
    ],
    ids=["low", "high", "none", "both", "wild"],
)
def test_whatever_the_noise_is_the_steps_end_within_the_rho(noise, method, adjacency):
    design = SynthDesign(
        (3, 2, 1, 4), method, 3, 60, keep=((0, 1),), zeros={(0,): np.array([True, False, False])}
    )
    mechanism = AdaptiveTables(rho=1, rows=2, adjacency=adjacency)
    source = ExtremeNoise(steps_of(design, mechanism), design, noise)
    given, taken = source.next_step, []

    def watched(left):
        step = given(left)
        taken.extend([] if step is None else [mechanism.rho_of(step)])
        return step

    source.next_step = watched
    made = mechanism.release(source)
    assert sum(taken) <= 1
    assert len(made) == len(taken) <= 2 * 16 * 4 + 5
