"""A search for parameters is one plan with one price, and only its best model is released."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.mechanisms import BestRun

RANDOM = np.random.default_rng(9)
X = RANDOM.normal(size=(400, 2))
Y = (X[:, 0] > 0).astype(int)


def a_model(**more):
    said = {"classes": [0, 1], "bounds": (-3, 3), "size": 400, "dataset": "searched",
            "budget": tc.Budget(epsilon=100, delta=1e-3)}  # fmt: skip
    return tc.learn.LogisticRegression(**{**said, **more})


def test_a_search_is_one_charge_and_the_same_search_again_is_free(tmp_path):
    path = str(tmp_path / "study.ledger")
    model = a_model(ledger=path, steps=20)
    grid = {"learning_rate": [1e-9, 2.0]}
    found = tc.learn.search(model, grid, X, Y, epsilon=2, delta=1e-4, runs=5)
    assert found.learning_rate in grid["learning_rate"]
    assert found.release_.content.settings["candidate"] in {0, 1}
    with tc.Ledger.open(path) as ledger:
        spent = ledger.account("searched").spent
    again = tc.learn.search(model, grid, X, Y, epsilon=2, delta=1e-4, runs=5)
    assert np.array_equal(found.coef_, again.coef_)
    assert found.get_params() == again.get_params()
    with tc.Ledger.open(path) as ledger:
        assert ledger.account("searched").spent == spent


def test_a_search_costs_what_it_promises():
    found = tc.learn.search(a_model(steps=3), {"steps": [2, 3]}, X, Y, epsilon=2, delta=1e-4, runs=5)
    promised = found.release_.certificate.fields["promised"]
    assert promised == {"epsilon": "2", "delta": "1/10000"}
    cost = tc.Cost.from_json(found.release_.certificate.fields["cost"])
    assert 1.99 < cost.epsilon(delta=1e-4) <= 2


def test_regression_is_searched_by_its_squared_error():
    model = tc.learn.LinearRegression(
        bounds=(-3, 3), target_bounds=(-3, 3), size=400, dataset="searched numbers",
        budget=tc.Budget(epsilon=100, delta=1e-3),
    )  # fmt: skip
    found = tc.learn.search(
        model, {"clip": [0.5, 1.0]}, X, X[:, 0], epsilon=2, delta=1e-4, runs=5, score="neg_mean_squared_error"
    )
    assert found.clip in {0.5, 1.0}


def test_a_cell_that_is_not_a_number_does_not_stop_a_search():
    features = X.astype(object)
    features[::7, 0] = "unknown"
    found = tc.learn.search(
        a_model(dataset="spoiled", steps=3), {"steps": [2, 3]}, features, Y, epsilon=2, delta=1e-4, runs=5
    )
    assert np.isfinite(found.coef_).all()


@pytest.mark.parametrize("grid", [{"epsilon": [1, 2]}, {"size": [10]}, {"ledger": ["other.ledger"]}])
def test_who_pays_is_not_searched(grid):
    with pytest.raises(TacitError, match="grid must be"):
        tc.learn.search(a_model(), grid, X, Y, epsilon=1, delta=1e-4)


def test_a_score_of_another_kind_is_refused():
    with pytest.raises(TacitError, match="score must be accuracy"):
        tc.learn.search(
            a_model(), {"steps": [2]}, X, Y, epsilon=2, delta=1e-4, runs=5, score="neg_mean_squared_error"
        )


def test_train_and_test_units_do_not_meet_and_do_not_depend_on_others():
    from tacit.learn.estimators._search import divided

    owners = np.repeat(np.arange(200), 2)
    data = tc.learn.examples(
        X, Y, unit="patient_id", owners=owners, per_unit=2, size=200, budget=tc.Budget(epsilon=1),
    )  # fmt: skip
    train, test = divided(data)
    assert not set(train._owners.tolist()) & set(test._owners.tolist())
    assert len(train._owners) + len(test._owners) == 400
    assert (train.size, test.size) == (160, 40)


def test_the_number_of_runs_follows_the_logarithmic_law():
    best = BestRun(tc.Cost.pure(1), candidates=3, runs=5)
    gamma = float(best.gamma)
    drawn = np.array([best.draw_runs() for _ in range(1_500)])
    for k in (1, 2, 3, 8):
        chance = (1 - gamma) ** k / (k * math.log(1 / gamma))
        deviation = math.sqrt(chance * (1 - chance) / 1_500)
        assert abs((drawn == k).mean() - chance) < 6.5 * deviation  # once in 10^10 runs
    assert drawn.min() == 1


def test_the_best_run_is_released():
    class Rising:
        def __init__(self):
            self.scores = []

        def run(self, place):
            self.scores.append(len(self.scores))
            return self.scores[-1], {"try": self.scores[-1]}

    for _ in range(20):
        runs = Rising()
        _, result = BestRun(tc.Cost.pure(1), candidates=4, runs=5).release(runs)
        assert result["try"] == runs.scores[-1]


def test_one_run_on_average_is_refused():
    with pytest.raises(TacitError, match="runs"):
        BestRun(tc.Cost.pure(1), candidates=3, runs=1)
