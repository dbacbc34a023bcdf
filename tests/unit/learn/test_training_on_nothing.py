"""Learning from nothing is refused before the charge, by declared and stored types, never by a value."""

from __future__ import annotations

import numpy as np
import pytest

import tacit as tc
from support.hospitals import all_hospitals, small_study

pytest.importorskip("sklearn")

LABELS = np.array([0, 1] * 20)
FEATURES = np.linspace(0, 1, 40)[:, None]


def fitted(kind, X, y=None, **given):
    """Plan a fit on data with a budget of its own, and return its price."""
    settings = {"epsilon": 1, "delta": 1e-6, "size": 40, "budget": tc.Budget(1, 1e-5), **given}
    settings.setdefault("bounds", (0, 1))
    plan = kind(dataset=f"nothing {np.random.default_rng().integers(2**60)}", **settings).plan(X, y)
    return plan.cost


@pytest.mark.parametrize("kind", ["LogisticRegression", "NaiveBayes", "ExplainableBoostingClassifier"])
@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (LABELS, ["a", "b"]),
        (LABELS.astype(bool), ["yes", "no"]),
        (LABELS.astype(np.uint8), [-1, 300]),
        (LABELS, [0.25, 0.75]),
        (LABELS.astype("M8[D]"), [0, 1]),
        (LABELS.astype("S1"), [0, 1]),
    ],
)
def test_labels_that_no_declared_class_can_match_are_refused_before_the_charge(kind, labels, classes):
    with pytest.raises(tc.TacitError, match="none of them can be one of the classes") as refusal:
        fitted(getattr(tc.learn, kind), FEATURES, labels, classes=classes)
    assert refusal.value.code == "bad-parameter"


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (LABELS, ["0", "1"]),
        (LABELS.astype(float), [0, 1]),
        (LABELS.astype(str), [0, 1]),
        (LABELS.astype(str), ["a", "b"]),
        (LABELS.astype(bool), [False, True]),
        (LABELS.astype(object), ["a", "b"]),
        (LABELS.tolist(), ["a", "b"]),  # the type of a list follows from its values, which are private
        ([*LABELS.tolist()[:-1], "a"], ["a", "b"]),
        (np.full(40, np.nan), [0, 1]),
    ],
)
def test_no_value_of_a_label_decides_whether_a_fit_is_refused(labels, classes):
    assert fitted(tc.learn.LogisticRegression, FEATURES, labels, classes=classes)


def test_features_that_no_value_of_their_type_can_fill_are_refused():
    pd = pytest.importorskip("pandas")
    dates = pd.DataFrame({"age": FEATURES[:, 0], "born": pd.date_range("2000-01-01", periods=40)})
    with pytest.raises(tc.TacitError, match="stored as datetime64"):
        fitted(tc.learn.LogisticRegression, dates, LABELS, classes=[0, 1])
    with pytest.raises(tc.TacitError, match="none of them can be one of the classes"):
        fitted(tc.learn.LogisticRegression, FEATURES, pd.Series(LABELS), classes=["a", "b"])
    with pytest.raises(tc.TacitError, match="lie between 0 and 255, outside the declared bounds"):
        fitted(tc.learn.KMeans, FEATURES.astype(np.uint8), bounds=(300, 400), n_clusters=2)
    with pytest.raises(tc.TacitError, match="lie between 0 and 1, outside the declared bounds"):
        fitted(tc.learn.LinearRegression, FEATURES, LABELS.astype(bool), target_bounds=(25, 300))
    assert fitted(tc.learn.KMeans, np.full((40, 1), np.nan), n_clusters=2)  # values are private


def test_teachers_and_evaluations_refuse_them_too():
    data = tc.learn.examples(FEATURES, LABELS, unit=tc.Unit.row(), size=40, budget=tc.Budget(9, 1e-3))
    with pytest.raises(tc.TacitError, match="none of them can be one of the classes"):
        tc.learn.Teachers(lambda X, y: lambda q: np.zeros(len(q)), data=data, teachers=4, classes=["0", "1"])
    with pytest.raises(tc.TacitError, match="none of them can be one of the classes"):
        tc.learn.evaluate(lambda X: X[:, 0], data, smaller_class=10, classes=["a", "b"], name="age")


def without_types(cell):
    return tc.learn.examples(
        [[0.1, 0.2, 0.3]] * 9 + [[0.1, 0.2, cell]], [0, 1] * 5, unit=tc.Unit.row(), size=40, name="h0",
        budget=tc.Budget(10**7, 1e-3),
    )  # fmt: skip


@pytest.mark.parametrize("cell", [0.5, "x"])
def test_no_cell_of_a_list_decides_whether_training_is_refused(cell):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 2)
    moves = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(tc.TacitError, match="arrays of numbers or tensors"):
        tc.learn.Trainer(
            model, torch.nn.CrossEntropyLoss(), moves, data=without_types(cell), batch=5, steps=2
        )
    agreed, keys = small_study(hospitals=2)
    with pytest.raises(tc.TacitError, match="arrays of numbers or tensors"):
        tc.learn.federated.Hospital("h0", agreed, without_types(cell), keys["h0"])


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("value", [0.5, np.nan])
def test_whoever_is_in_the_data_all_ways_of_learning_release_something(rows, value):
    X, y = np.full((rows, 2), value), np.full(rows, value)
    facts = {"epsilon": 1, "delta": 1e-6, "size": 40, "bounds": (0, 1), "budget": tc.Budget(9, 1e-3)}
    for kind, more in {
        "ExplainableBoostingClassifier": {"classes": [0, 1]}, "KMeans": {"n_clusters": 2},
        "LinearRegression": {"target_bounds": (0, 1)}, "LogisticRegression": {"classes": [0, 1]},
        "NaiveBayes": {"classes": [0, 1]}, "PCA": {"n_components": 2}, "PoissonRegressor": {"most": 5},
        "Ridge": {"target_bounds": (0, 1)}, "Standardiser": {},
    }.items():  # fmt: skip
        for unit in ("row", "patient"):
            model = getattr(tc.learn, kind)(dataset=f"{kind} {unit}", unit=unit, **facts, **more)
            owners = {} if unit == "row" else {"owners": ["ana"] * rows}
            assert model.fit(X, y, **owners).release_ is not None
    searched = tc.learn.LogisticRegression(dataset="searched nothing", classes=[0, 1], **facts)
    assert (
        tc.learn.search(searched, {"steps": [2, 3]}, X, y, epsilon=1, delta=1e-6, runs=3).release_ is not None
    )
    score = tc.learn.scorer("accuracy", epsilon=0.1)
    share = score(searched.set_params(dataset="scored nothing").fit(X, y), X, y)
    assert np.isnan(share) or 0 <= share <= 1  # the noise hides a share of so few rows, nearly always
    data = tc.learn.examples(X, y, unit=tc.Unit.row(), size=2_000, budget=tc.Budget(9, 1e-3))
    shares = tc.learn.evaluate(lambda X: X[:, 0], data, classes=[0, 1], smaller_class=900, name="first")
    assert shares.plan(epsilon=1, delta=1e-6).release().auc is not None


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("given", [{}, {"noise_kind": "correlated", "bands": 2}, {"clip": "automatic"}])
def test_whoever_is_in_the_data_a_model_is_trained(rows, given):
    torch = pytest.importorskip("torch")
    X, y = np.full((rows, 3), np.nan, np.float32), np.zeros(rows, np.int64)
    data = tc.learn.examples(
        X, y, unit="patient", owners=["ana"] * rows, per_unit=2, size=40, budget=tc.Budget(99, 1e-3)
    )
    model = torch.nn.Linear(3, 2)
    moves = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = tc.learn.Trainer(
        model, torch.nn.CrossEntropyLoss(), moves, data=data, batch=20, steps=3, noise=1, delta=1e-4, **given
    )
    assert np.isfinite(trainer.plan().release().weights["bias"]).all()


@pytest.mark.parametrize("noise", ["shared", "own"])
@pytest.mark.parametrize("rows", [0, 1])
def test_whoever_is_in_them_hospitals_train_together(rows, noise):
    agreed, keys = small_study(noise, hospitals=2, rounds=2)
    data = (np.full((rows, 3), np.nan), np.zeros(rows))
    joined = tc.learn.federated.in_process(all_hospitals(agreed, keys, data=data))
    assert tc.learn.federated.Coordinator(agreed, joined).train().rounds == 2


def test_a_refused_fit_charges_nothing(tmp_path):
    given = {"size": 40, "budget": tc.Budget(1, 1e-5), "dataset": "ward", "ledger": tmp_path / "tacit.ledger"}
    model = tc.learn.LogisticRegression(epsilon=1, delta=1e-6, bounds=(0, 1), classes=["a", "b"], **given)
    with pytest.raises(tc.TacitError):
        model.fit(FEATURES, LABELS)
    assert model.set_params(classes=[0, 1]).fit(FEATURES, LABELS).release_ is not None


def test_a_row_that_a_model_refuses_does_not_change_how_others_in_its_block_are_scored():
    from tacit.learn.evaluation._evaluation import score_rows

    def score(rows):  # a model that rounds a single row differently
        if (rows < 0).any():
            raise ValueError
        return np.full(len(rows), 0.5 if len(rows) > 1 else 0.25)

    rows = np.array([[1.0], [-1.0], [2.0]])
    found = score_rows(score, rows, 2, size=4)
    assert np.isnan(found[1]).all()
    assert found[[0, 2], 1].tolist() == [0.5, 0.5]
