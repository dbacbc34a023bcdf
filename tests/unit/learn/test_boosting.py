"""Boosting finds the shapes of an additive model, explains them, and survives a file."""

from __future__ import annotations

import numpy as np
import pytest

import tacit as tc
from support.shape_neighbours import declared
from tacit.learn.estimators._boosting import MAX_SCORE, RESIDUAL_STEPS, SCORE_STEPS, chances

CUTS = {"age": [-2, -1, 0, 1, 2], "shoe size": [-1, 1]}
NAMED = {"cuts": CUTS, "categories": {"smoker": ["no", "yes"]}, "names": ["age", "smoker", "shoe size"]}


def additive(size):
    """Return rows whose log odds are a step of the first feature plus one of the second."""
    random = np.random.default_rng(7)
    X = np.stack(
        [random.uniform(-3, 3, size), random.integers(0, 2, size), random.uniform(-3, 3, size)], axis=1
    )
    odds = np.floor(X[:, 0]) / 2 + 0.25 + 1.0 * X[:, 1] - 0.5
    return X, (random.random(size) < 1 / (1 + np.exp(-odds))).astype(int)


@pytest.fixture(scope="module")
def fitted():
    X, y = additive(40_000)
    model = tc.learn.ExplainableBoostingClassifier(
        classes=[0, 1], **NAMED, epsilon=100_000, delta=1e-6, passes=30
    )
    return model.fit(declared(X, y)), X, y


def test_the_shapes_are_those_of_the_data(fitted):
    model, *_ = fitted
    age, smoker, shoe = model.shapes_.shapes
    assert np.abs(np.diff(age.values[:-1]) - 0.5).max() < 0.2
    assert smoker.values[1] - smoker.values[0] == pytest.approx(1, abs=0.15)
    assert max(map(abs, shoe.values[:-1])) < 0.1
    assert list(model.feature_importances_.argsort()[::-1]) == [0, 1, 2]
    assert sum(age.share) == pytest.approx(1)
    assert (smoker.cuts, smoker.labels) == ((0.5,), ("no", "yes", "missing"))


def test_the_score_is_the_sum_of_the_shapes(fitted):
    model, X, _ = fitted
    age, smoker, shoe = model.shapes_.shapes
    score = model.intercept_ + age.values[-1] + smoker.values[1] + shoe.values[0]
    assert model.decision_function([[np.nan, 1.0, -2.0]])[0] == pytest.approx(score)
    assert np.allclose(model.predict_proba(X[:50])[:, 1], 1 / (1 + np.exp(-model.decision_function(X[:50]))))


def test_the_release_explains_itself_and_survives_a_file(fitted, tmp_path):
    model, X, _ = fitted
    text = repr(model.release_)
    assert text.index("age") < text.index("smoker") < text.index("shoe size")
    assert "2 and above" in text
    assert "yes: +" in text
    assert "<table>" in model.release_._repr_html_()
    model.release_.save(tmp_path / "shapes.json")
    again = tc.learn.ExplainableBoostingClassifier().from_release(tc.Release.load(tmp_path / "shapes.json"))
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert again.shapes_.shapes == model.shapes_.shapes


def test_the_picture_has_a_chart_for_each_feature_and_a_band(fitted):
    model, *_ = fitted
    picture = model.release_.plot()
    assert [axes.get_title(loc="left") for axes in picture.axes[:3]] == ["age", "smoker", "shoe size"]
    assert all(axes.collections for axes in picture.axes[:3])
    assert model.release_.plot("smoker").axes[0].get_title(loc="left") == "smoker"
    with pytest.raises(tc.TacitError, match="no picture 'height'"):
        model.release_.plot("height")


def test_the_table_of_chances_is_exact_to_a_step():
    table = chances()
    assert len(table) == 2 * MAX_SCORE * SCORE_STEPS + 1
    assert table.min() >= 0
    assert table.max() < RESIDUAL_STEPS
    assert (np.diff(table) >= 0).all()
    assert table[MAX_SCORE * SCORE_STEPS] == RESIDUAL_STEPS // 2


def test_more_noise_gives_wider_bands():
    X, y = additive(2_000)
    models = [
        tc.learn.ExplainableBoostingClassifier(classes=[0, 1], **NAMED, epsilon=epsilon, delta=1e-6)
        for epsilon in (1_000, 1)
    ]
    narrow, wide = (one.fit(declared(X, y)).shapes_.shapes[0].error[2] for one in models)
    assert narrow < wide / 3
