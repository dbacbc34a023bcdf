"""Evaluation reads accuracy, AUC and calibration off one noisy histogram, and refuses small classes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import tacit as tc
from support.shape_neighbours import declared
from tacit.learn.evaluation._measures import HistogramReader

EXACT = {"epsilon": 10**6, "delta": 1e-6}


def scored(size):
    random = np.random.default_rng(11)
    score = random.beta(2, 3, size)
    return score[:, None], (random.random(size) < score).astype(int)


def first_column(rows):
    return np.clip(rows[:, 0], 0, 1)


def evaluation(X, y, **given):
    asked = {"classes": [0, 1], "smaller_class": 1_000, "name": "first column", **given}
    return tc.learn.evaluate(first_column, declared(X, y), **asked).plan(**EXACT)


def test_without_noise_it_says_what_scikit_learn_says():
    X, y = scored(4_000)
    found = evaluation(X, y, bins=200, block=512).release()
    assert found.auc.value == pytest.approx(roc_auc_score(y, X[:, 0]), abs=5e-4)
    assert found.accuracy.value == pytest.approx(((X[:, 0] >= 0.5) == y).mean(), abs=1e-6)
    assert found.calibration.value == pytest.approx(y.mean() - X.mean(), abs=2.5e-3)
    assert found.auc.noise < 1e-3
    assert found.auc.high - found.auc.low == pytest.approx(4 * 0.0078, rel=0.2)  # sampling stays


def test_rows_in_blocks_have_the_same_scores_as_rows_alone():
    X, y = scored(300)
    alone, blocks = (evaluation(X, y, block=block).release() for block in (1, 128))
    assert np.abs(alone.counts - blocks.counts).max() < 0.5
    assert alone.certificate.fields["plan"] != blocks.certificate.fields["plan"]


def test_a_row_that_the_model_refuses_is_dropped_without_a_word():
    X, y = scored(600)
    X[5] = np.nan
    y[6] = 7

    def touchy(rows):
        if np.isnan(rows).any():
            raise ValueError(rows)
        return first_column(rows)

    asked = {"classes": [0, 1], "smaller_class": 200, "name": "touchy"}
    for block in (1, 64):
        found = tc.learn.evaluate(touchy, declared(X, y), block=block, **asked).plan(**EXACT).release()
        assert round(float(found.counts.sum())) == 598


def test_several_classes_have_accuracy_and_calibration():
    X, y = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=200).fit(X[:1_000] / 16, y[:1_000])
    question = tc.learn.evaluate(model, declared(X[1_000:] / 16, y[1_000:]), block=256)
    found = question.plan(**EXACT).release()
    assert found.auc is None
    assert found.accuracy.value == pytest.approx(model.score(X[1_000:] / 16, y[1_000:]), abs=1e-6)
    confidence = model.predict_proba(X[1_000:] / 16).max(axis=1).mean()
    assert found.calibration.value == pytest.approx(found.accuracy.value - confidence, abs=0.026)
    with pytest.raises(tc.TacitError, match="picture"):
        found.plot("roc")


def test_a_private_estimator_is_evaluated_by_its_release():
    X, y = scored(3_000)
    model = tc.learn.ExplainableBoostingClassifier(classes=[0, 1], bounds=(0, 1), **EXACT).fit(declared(X, y))
    held_out = declared(*scored(2_000))
    of_estimator, of_release = (
        tc.learn.evaluate(one, held_out, smaller_class=500).plan(**EXACT) for one in (model, model.release_)
    )
    assert of_estimator.hash == of_release.hash
    assert of_release.release().accuracy.value > 0.6


def test_the_release_survives_a_file_and_shows_itself(tmp_path):
    release = evaluation(*scored(2_000)).release()
    release.save(tmp_path / "evaluation.json")
    again = tc.Release.load(tmp_path / "evaluation.json")
    assert repr(again) == repr(release)
    assert (again.auc, again.outcomes) == (release.auc, release.outcomes)
    assert "accuracy" in repr(release)
    assert "auc" in release._repr_html_()
    assert release.plot().axes[0].get_xlabel() == "score of the model"
    assert "above the score" in release.plot("roc").axes[0].get_xlabel()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"smaller_class": None}, "smaller_class"),
        ({"smaller_class": 90, "epsilon": 1}, "too few"),
        ({"bins": 7}, "bins"),
        ({"bins": [0, 0.4, 1]}, "bins"),
        ({"delta": 0.1}, "delta"),
        ({"classes": [0]}, "classes"),
        ({"classes": None}, "classes"),
        ({"block": 0}, "block"),
        ({"name": None, "model": "no model"}, "predict_proba|chances"),
    ],
)
def test_what_cannot_be_read_off_is_refused_before_a_charge(given, said):
    X, y = scored(2_000)
    asked = {"classes": [0, 1], "smaller_class": 800, "name": "first column", **given}
    goal = {name: asked.pop(name, total) for name, total in EXACT.items()}
    with pytest.raises(tc.TacitError, match=said) as refused:
        tc.learn.evaluate(asked.pop("model", first_column), declared(X, y), **asked).plan(**goal)
    assert str(refused.value.fix)


def test_the_former_call_warns_and_gives_the_same_plan():
    data = declared(*scored(2_000))
    asked = {"classes": [0, 1], "smaller_class": 800, "name": "first column"}
    with pytest.warns(DeprecationWarning, match=r"\.evaluate\(\.\.\.\)\.plan\("):
        former = tc.learn.evaluate(first_column, data, confidence=0.9, **asked, **EXACT)
    plan = tc.learn.evaluate(first_column, data, **asked).plan(confidence=0.9, **EXACT)
    assert (former, former.confidence) == (plan, plan.confidence)


def test_a_model_that_cannot_be_recognised_needs_a_name():
    X, y = scored(2_000)
    with pytest.raises(tc.TacitError, match="name"):
        tc.learn.evaluate(lambda rows: rows[:, 0], declared(X, y), classes=[0, 1], smaller_class=800)


def test_noisy_classes_near_zero_give_no_false_certainty():
    counts = np.array([[30.0, 2.0], [1.0, -8.0]])
    reader = HistogramReader(np.array([0, 0.5, 1]), counts, 5.0, 1, Fraction(95, 100))
    assert (reader.auc().low, reader.auc().high) == (0, 1)
    assert reader.outcomes()[1].high - reader.outcomes()[1].low == 1


def test_several_rows_of_a_patient_widen_the_interval():
    counts = np.array([[300.0, 200.0], [100.0, 400.0]])
    one, four = (
        HistogramReader(np.array([0, 0.5, 1]), counts, 1.0, rows, Fraction(95, 100)).auc() for rows in (1, 4)
    )
    assert (four.high - four.low) / (one.high - one.low) == pytest.approx(2, abs=0.05)
