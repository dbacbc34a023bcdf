"""Releases of tables: right where noise is small, stored once, certified, shown and converted."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from support.asking import HUGE, ledger_of, visits
from tacit import TacitError
from tacit.tables import example_visits


def test_answers_are_right_where_noise_is_small():
    data = visits(limits={"rows": 100}, budget=HUGE)
    frame = pd.read_parquet(example_visits())
    frame["stay"] = frame["length_of_stay"].clip(0, 30)
    release = (
        data.group_by("hospital")
        .agg(
            n=tc.count(),
            k=tc.count("length_of_stay"),
            p=tc.count_units(),
            s=tc.sum("length_of_stay"),
            m=tc.mean("length_of_stay"),
            v=tc.variance("length_of_stay"),
            sd=tc.std("length_of_stay"),
            d=tc.count_distinct("icd"),
            q=tc.median("length_of_stay"),
        )
        .plan(epsilon=10**8)
        .release()
        .to_pandas()
        .set_index("hospital")
    )
    groups = frame.groupby("hospital")
    truth = {
        "n": groups.size(),
        "k": groups["stay"].count(),
        "p": groups["patient_id"].nunique(),
        "s": groups["stay"].sum(),
        "m": groups["stay"].mean(),
        "v": groups["stay"].var(),
        "sd": groups["stay"].std(),
        "d": groups["icd"].nunique(),
    }
    for name, column in truth.items():
        np.testing.assert_allclose(release[name], column, rtol=1e-3, err_msg=name)
        assert (release[f"{name}_low"] <= release[name]).all()
        assert (release[name] <= release[f"{name}_high"]).all()
    assert (release["q"] - groups["stay"].median()).abs().max() <= 0.1


def test_the_same_plan_gives_the_stored_release():
    data = visits()
    ask = data.group_by("hospital").agg(n=tc.count())
    first = ask.plan(epsilon=0.5).release()
    left = data.remaining
    again = ask.plan(epsilon=0.5).release()
    assert again.columns == first.columns
    assert data.remaining == left
    assert ask.plan(epsilon=0.6).release().columns != first.columns


def test_failures_after_the_charge_are_opaque_and_stay_charged(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("pid,x\n1,2\n")
    data = tc.protect(tmp_path / "t.csv", unit="pid", bounds={"x": (0, 5)}, budget=tc.Budget(epsilon=1))
    plan = data.agg(s=tc.sum("x")).plan(epsilon=0.5)

    def fails(_engine):
        raise RuntimeError("a hidden row")

    monkeypatch.setattr("tacit.engines.DuckDB.transaction", fails)
    with pytest.raises(TacitError) as failed:
        plan.release()
    assert failed.value.code == "release-failed"
    assert "hidden" not in str(failed.value)
    assert float(data.remaining.epsilon) == 0.5
    with pytest.raises(TacitError) as again:  # another try is another draw, and another charge
        plan.release()
    assert again.value.code == "release-failed"
    assert float(data.remaining.epsilon) == 0


def test_certificates_say_what_was_promised_and_match_the_ledger(tmp_path):
    data = visits()
    release = data.agg(n=tc.count()).plan(epsilon=0.5).release()
    release.certificate.save(tmp_path / "n.json")
    loaded = tc.Certificate.load(tmp_path / "n.json")
    assert json.loads(loaded.to_json())["dataset"] == {
        "name": "visits",
        "version": 1,
        "unit": "patient_id",
        "adjacency": "add/remove",
    }
    assert loaded.matches(ledger_of(data))
    assert not loaded.matches(tc.Ledger.memory())
    with pytest.raises(TacitError):
        tc.Certificate.load(tmp_path / "nothing.json")


def test_a_release_without_lines_says_so_in_words():
    data = visits(limits={"rows": 1})
    none = data.sql("SELECT admitted, COUNT(*) AS n FROM visits GROUP BY admitted")
    release = none.plan(epsilon=0.05, delta=1e-9).release()
    assert len(release) == 0
    for shown in (repr(release), release._repr_html_()):
        assert "no group was large enough" in shown
        assert "intervals" not in shown
    chosen = data.sql("SELECT hospital, COUNT(*) AS n FROM visits GROUP BY hospital HAVING n > 1e12")
    assert "none met the condition" in repr(chosen.plan(epsilon=1).release())


def test_releases_convert_and_plot(tmp_path):
    release = (
        visits().group_by("hospital").agg(n=tc.count(), m=tc.mean("length_of_stay")).plan(epsilon=1).release()
    )
    assert list(release.to_pandas().columns) == ["hospital", "n", "n_low", "n_high", "m", "m_low", "m_high"]
    assert release.to_arrow().num_rows == len(release) == 8
    release.to_parquet(tmp_path / "r.parquet")
    assert release.to_csv(tmp_path / "r.csv").startswith("hospital,n,n_low")
    assert release.plot("m").get_ylabel() == "m"
    assert "Ahorn" in repr(release)
    assert "\nvalue [low, high]; 95 % intervals for the noise; dropped rows" in repr(release)
    assert "<table>" in release._repr_html_()
    whole = release.rounded("n")
    assert whole.marks
    assert all(isinstance(v, int) and v >= 0 for v in whole["n"].value)
