"""Forged plans and releases of questions about rows: refused, quickly, and as one error."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.exact import read_fraction
from tacit.tables.workloads._cross_tables import CrossNoise

COLUMNS = [f"c{i}" for i in range(40)]
ENDLESS = "1e999999999"  # Fraction(ENDLESS) would write out a thousand million digits
EVIL = [
    ENDLESS,
    "9" * 5000,
    "1/0",
    "-1",
    "nan",
    None,
    True,
    -1,
    10**9,
    1e308,
    float("nan"),
    [],
    {},
    [[]],
    ["x"],
]


def dataset():
    frame = pd.DataFrame({"pid": range(3), "age": [1.0, 40.0, 99.0], "sex": ["F", "M", None]})
    return tc.protect(
        frame, unit="pid", limits={"rows": 1}, keys={"sex": ["F", "M"]}, bounds={"age": (0, 100)},
        budget=tc.Budget(epsilon=10**6, delta=0.1), ledger=tc.Ledger.memory(), name="people",
    )  # fmt: skip


def wide():
    frame = pd.DataFrame({"pid": range(3), **{name: [0, 1, 0] for name in COLUMNS}})
    return tc.protect(
        frame, unit="pid", limits={"rows": 1}, keys={name: [0, 1] for name in COLUMNS},
        budget=tc.Budget(epsilon=100, delta=0.1), ledger=tc.Ledger.memory(), name="wide",
    )  # fmt: skip


def plans(data):
    cross = data.crosstabs(["age", "sex"], bins={"age": 4})
    return {
        "cross": cross.plan(epsilon=1, delta=1e-9),
        "within": cross.plan(within=40),
        "ranges": data.ranges("age", bins=8, ranges=[(0, 25), (25, 50)]).plan(epsilon=1, delta=1e-9),
        "prefixes": data.prefixes("age", bins=8, by="sex").plan(rho=1),
        "hierarchy": data.hierarchy(["r", "sex"], tree={"a": ["F"], "b": ["M"]}, weights={"r": 2}).plan(
            rho=1
        ),
        "linear": data.regress("age", on=["sex"], bounds={"age": (0, Fraction(199, 2))}).plan(epsilon=1),
        "logistic": data.regress("sex", on=["age"], kind="logistic", bins={"age": 2}).plan(epsilon=1),
        "survival": data.survival(time="age", event="age", bins=[0, 50, 100], by="sex").plan(rho=1),
        "synthetic": data.synthesize(["age", "sex"], bins={"age": 2}, never=[{"sex": "F"}]).plan(rho=1),
        "batch": tc.batch(a=data.agg(n=tc.count()), b=cross).plan(epsilon=1, delta=1e-9),
    }


def places(document, at=()):
    """All places in a document, of a list the first two; plain answers have tests of their own."""
    yield at
    inside = document.items() if isinstance(document, dict) else ()
    for name, one in inside or (enumerate(document[:2]) if isinstance(document, list) else ()):
        if name not in {"relation", "question", "columns"}:
            yield from places(one, (*at, name))


def forged(document, at, value):
    if not at:
        return value
    made = copy.deepcopy(document)
    inner = made
    for name in at[:-1]:
        inner = inner[name]
    inner[at[-1]] = value
    return made


@pytest.mark.parametrize(
    "kind",
    [
        "cross", "within", "ranges", "prefixes", "hierarchy", "linear", "logistic", "survival", "synthetic",
        "batch",
    ],
)  # fmt: skip
def test_forged_plans_are_refused_with_one_code(kind):
    data = dataset()
    document = json.loads(json.dumps(plans(data)[kind].to_json()))
    for at in places(document["request"]):
        for value in EVIL:
            request = forged(document["request"], at, value)
            try:
                same = data.plan_from({**document, "request": request})
            except TacitError as refused:
                assert refused.code == "plan-differs", (at, value)
            else:
                assert same.hash == document["plan"]


@pytest.mark.parametrize("kind", ["cross", "ranges", "prefixes", "hierarchy", "batch"])
def test_forged_releases_are_refused_or_shown(kind):
    document = json.loads(json.dumps(plans(dataset())[kind].release().to_json()))
    for at in places(document["content"]):
        for value in [*EVIL, "eJwDAAAAAAE="]:
            try:
                release = tc.Release.from_json(
                    {**document, "content": forged(document["content"], at, value)}
                )
            except TacitError as refused:
                assert refused.code == "bad-release", (at, value)
            else:
                assert str(release)


@pytest.mark.parametrize(
    "text", [ENDLESS, "1/0", "1/01", "1.5", "", " 1", "1\n", "+1", "9" * 1301, 1, None, "१"]
)
def test_numbers_of_documents_have_digits_and_a_slash(text):
    with pytest.raises(ValueError, match="not a fraction"):
        read_fraction(text)


HUGE = [
    lambda data: data.crosstabs(["age", "sex"], bins={"age": 10**12}),
    lambda data: data.crosstabs(["age", "sex"], bins={"age": range(10**7)}),
    lambda data: data.ranges("age", bins=10**12),
    lambda data: data.ranges("age", bins=8, ranges=[(0, 25)] * 10_001),
    lambda data: data.ranges("age", bins=8, ranges={(0, 25): 1e300, (25, 50): 1}),
    lambda data: data.crosstabs(["age", "sex"], bins={"age": 4}).plan(rho=Fraction(1, 10**30)),
    lambda data: data.crosstabs(["age", "sex"], up_to=1, bins={"age": 4}).plan(within=1e-300),
    lambda data: data.crosstabs(["age", "sex"], bins={"age": 4}).plan(
        within={"age": 1e-9, "sex": 1}, delta=1e-9
    ),
    lambda data: data.crosstabs(["age", "sex"], bins={"age": 4}, weights={"age": 1e-300}),
]


@pytest.mark.parametrize("ask", HUGE, ids=range(len(HUGE)))
def test_what_is_too_large_is_refused_before_it_is_made(ask):
    with pytest.raises(TacitError) as caught:
        ask(dataset())
    assert caught.value.code == "bad-parameter"


def test_tables_of_many_columns_are_refused_and_many_tables_are_quick():
    data = wide()
    for columns, options in ((COLUMNS, {"up_to": 20}), (COLUMNS[:13], {"tables": [COLUMNS[:13]]})):
        with pytest.raises(TacitError) as caught:
            data.crosstabs(columns, **options)
        assert caught.value.code == "question-too-large"
    assert str(data.crosstabs(COLUMNS[:12], tables=[COLUMNS[:12]], missing=False).plan(epsilon=1))
    assert str(data.crosstabs(COLUMNS, up_to=2).plan(epsilon=1))
    assert str(data.crosstabs(COLUMNS, up_to=2).plan(within=100, delta=1e-9))


@pytest.mark.parametrize("aim", ["largest", "sum"])
def test_shares_of_tables_with_tiny_weights_stay_within_epsilon(aim):
    light = {(name,): Fraction(1, 10**12) for name in COLUMNS[1:]}
    plan = wide().crosstabs(COLUMNS, up_to=1, weights={**light, ("c0",): 1}, aim=aim).plan(epsilon=1)
    assert Fraction(99, 100) < plan.cost.spend.epsilon <= 1
    lightest = {(name,): Fraction(1, 10**12) for name in COLUMNS[1:]}
    noise = wide().crosstabs(COLUMNS, up_to=1, weights=lightest).plan(epsilon=Fraction(1, 3))
    assert noise.cost.spend.epsilon <= Fraction(1, 3)


def test_the_noises_in_a_cell_are_those_of_the_definition():
    """Terms that are grouped add up to those of every measured cell: unbiased, with the stated variance."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        columns = int(rng.integers(1, 5))
        sizes = tuple(int(n) for n in rng.integers(1, 4, columns))
        every = [one for k in range(columns + 1) for one in combinations(range(columns), k)]
        some = [every[i] for i in rng.choice(len(every), min(3, len(every)), replace=False)]
        sets = tuple(one for one in some if not any(set(one) < set(other) for other in some))
        noise = CrossNoise(
            sizes, "laplace", sets, tuple(Fraction(int(n)) for n in rng.integers(1, 3, len(sets)))
        )
        for table in {part for one in sets for k in range(len(one) + 1) for part in combinations(one, k)}:
            found = sum(
                2 * scale**2 * weight**2 * times for scale, weight, times in noise._laplace_terms(table)
            )
            assert found == pytest.approx(noise.variance(table), rel=1e-9)
            one = [np.zeros([sizes[i] for i in held]) for held in sets]
            at = 0
            for place, held in enumerate(one):  # the estimate is linear: read the weights off unit vectors
                for cell in np.ndindex(held.shape):
                    held[cell] = 1
                    weight = noise.estimate(table, one).reshape(-1)[0]
                    at += 2 * float(noise.scales[place]) ** 2 * weight**2
                    held[cell] = 0
            assert at == pytest.approx(found, rel=1e-6)
