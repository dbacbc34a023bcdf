"""Values that the noise hides: the rule at its threshold, in every surface, from released integers alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import pandas as pd
import pytest

import tacit as tc
from support.asking import subject_of
from tacit import TacitError
from tacit.core import HIDDEN, is_hidden, least_shown, swamped
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace, LinearNoise

WARDS = ["full", "small", "empty"]


def patients(small=3, *, full=5_000, epsilon=10**6):
    frame = pd.DataFrame(
        {
            "pid": range(full + small),
            "ward": ["full"] * full + ["small"] * small,
            "stay": [float(i % 30) for i in range(full + small)],
        }
    )
    return tc.protect(
        frame, unit="pid", budget=tc.Budget(epsilon=epsilon), name="v", keys={"ward": WARDS},
        bounds={"stay": (0, 60)}, limits={"rows": 1},
    )  # fmt: skip


def by_ward(release, column="m", end="value"):
    """Return the values of a column in the order of WARDS."""
    found = dict(zip(release.keys["ward"], getattr(release[column], end), strict=True))
    return [found[ward] for ward in WARDS]


def hidden(release, column="m"):
    return [value is None for value in by_ward(release, column)]


def words(release):
    return " ".join(str(release).split())


def asked(small=3):
    return patients(small).group_by("ward").agg(
        n=tc.count(), m=tc.mean("stay"), sd=tc.std("stay"), s=tc.sum("stay"),
        q=tc.median("stay"), e=tc.median("stay", interval=True),
    )  # fmt: skip


def read(question, totals, *, epsilon=1):
    """Read a mean off parts that add up to these totals, as a release of these integers would."""
    subject = subject_of(question.plan(epsilon=epsilon))
    [noise] = subject.noises
    lines = [[*[0] * (noise.statistic.size - 1), total] for total in totals]
    return subject, noise, subject.read([lines], Fraction(19, 20))


# the rule


@pytest.mark.parametrize(
    ("aggregate", "scales"),
    [
        (tc.mean("stay"), math.sqrt(96)),  # three parts: 9.8 scales
        (tc.mean("stay", spread=False), 8),
        (tc.std("stay"), math.sqrt(96)),
        (tc.variance("stay"), math.sqrt(96)),
        (tc.covariance("stay", "age"), math.sqrt(288)),  # nine products
    ],
)
def test_a_value_is_hidden_up_to_the_threshold_and_shown_beyond(aggregate, scales):
    frame = pd.DataFrame({"pid": [0], "stay": [1.0], "age": [1.0]})
    data = tc.protect(
        frame, unit="pid", budget=tc.Budget(epsilon=9), bounds={"stay": (0, 60), "age": (0, 90)},
        limits={"rows": 1},
    )  # fmt: skip
    question = data.agg(m=aggregate)
    [scale] = {one.scale for one in subject_of(question.plan(epsilon=1)).noises[0].mechanisms}
    at = float(scale) * scales
    totals = [math.floor(at * 0.99), math.floor(at), math.floor(at) + 1, math.ceil(at * 1.01)]
    _, _, answer = read(question, totals)
    lows = answer["m"].low
    assert [value is None for value in answer["m"].value] == [True, True, False, False]
    assert None not in lows


def test_the_rule_is_four_standard_deviations_of_the_noise_in_the_number_of_rows():
    two, three = 2 * 2 * Fraction(10) ** 2, 3 * 2 * Fraction(10) ** 2
    assert [is_hidden(n, two) for n in (-5, 0, 79, 80, 81)] == [True] * 4 + [False]
    assert [is_hidden(n, three) for n in (97, 98)] == [True, False]
    assert least_shown(two) == 81
    assert least_shown(three) == 98
    assert swamped(79.9, 1.959963984 * 20, 0.95)
    assert not swamped(80.1, 1.959963984 * 20, 0.95)


@pytest.mark.parametrize(("rows", "most"), [(0, 0.001), (3, 0.02), (8, 0.51), (10, 0.87), (15, 0.999)])
def test_the_rule_shows_as_often_as_its_page_says(rows, most):
    law, scale = LinearNoise((1.0,)), 1.0
    away = 8 * scale - rows  # shown if the noise in n exceeds this
    tail = float(law.tail(abs(away), [1.0, 1.0])) / 2
    shown = tail if away >= 0 else 1 - tail
    assert {0: 0.0008, 3: 0.0118, 8: 0.5, 10: 0.865, 15: 0.998}[rows] == pytest.approx(shown, abs=5e-4)
    assert shown <= most


def test_a_quantile_from_counts_is_hidden_if_its_rank_error_is_half_of_the_rows():
    question = patients().agg(q=tc.quantiles("stay", [0.5], candidates=range(61)))
    subject = subject_of(question.plan(epsilon=1))
    [noise] = subject.noises
    twice = 2 * subject.columns[0].reading.rank_error(noise, Fraction(19, 20))
    lines = [[0] * 30 + [total] + [0] * 30 for total in (math.floor(twice), math.ceil(twice))]
    answer = subject.read([lines], Fraction(19, 20))
    assert [value is None for value in answer["q_0.5"].value] == [True, False]
    wide = subject.read([lines], Fraction(1, 2))  # the confidence of the intervals does not enter
    assert wide["q_0.5"].value == answer["q_0.5"].value


def test_a_picked_quantile_is_hidden_by_the_count_beside_it():
    answer = asked().plan(epsilon=1).release()
    assert hidden(answer, "q") == hidden(answer, "e") == [False, True, True]
    assert by_ward(answer, "q", "low") == [None, 0.0, 0.0]
    assert by_ward(answer, "q", "high") == [None, 60.0, 60.0]
    alone = patients().group_by("ward").agg(q=tc.median("stay")).plan(epsilon=1).release()
    assert None not in alone["q"].value  # no released number of rows: the caption states the rank error


def test_noise_of_several_members_adds_up():
    question = patients().agg(m=tc.mean("stay"))
    subject = subject_of(question.plan(epsilon=1))
    [one] = subject.noises
    three = replace(one, mechanisms=one.mechanisms * 3)
    gaussian = replace(one, mechanisms=(DiscreteGaussian(rho=0.1, sensitivity=1),))
    assert three.variance == 3 * one.variance
    assert gaussian.variance == one.statistic.size * gaussian.mechanisms[0].scale ** 2
    assert one.variance == one.statistic.size * 2 * one.mechanisms[0].scale ** 2
    assert isinstance(one.mechanisms[0], DiscreteLaplace)


# nothing but released integers


def test_the_rule_reads_released_integers_alone():
    totals = [10**6, 10, 0]
    _, _, first = read(patients(3).agg(m=tc.mean("stay")), totals)
    _, _, other = read(patients(4).agg(m=tc.mean("stay")), totals)
    assert first == other
    plans = [asked(small).plan(epsilon=1) for small in (3, 4)]
    assert str(plans[0]).split("hash")[0] == str(plans[1]).split("hash")[0]


def test_an_empty_table_shows_no_mean():
    data = patients(0, full=0)
    for _ in range(100):
        answer = data.agg(m=tc.mean("stay"), sd=tc.std("stay"), s=tc.sum("stay")).plan(epsilon=1)
        made = subject_of(answer).read([[[0, 0, 0]]], Fraction(19, 20))
        assert made["m"].value == made["sd"].value == (None,)
    release = data.agg(m=tc.mean("stay"), s=tc.sum("stay")).plan(epsilon=1).release()
    assert release["m"].value == (None,)
    assert (release["m"].low, release["m"].high) == ((0.0,), (60.0,))
    assert release["s"].value != (None,)  # a sum with its noise is an answer


# surfaces


def test_a_hidden_value_is_missing_in_every_surface(tmp_path):
    release = asked().plan(epsilon=1).release()
    assert words(release).count(HIDDEN) >= 5
    assert "its interval holds" in words(release)
    assert HIDDEN in release._repr_html_()
    frame = release.to_pandas().set_index("ward").loc[WARDS]
    assert frame["m"].isna().tolist() == [False, True, True]
    assert frame["m_low"].notna().all()
    assert frame["n"].notna().all()
    assert release.to_polars()["m"].null_count() == 2
    assert release.to_arrow()["m"].null_count == 2
    assert {line["ward"]: line["m"] for line in release}["empty"] is None
    [line] = [line for line in release.to_csv().splitlines() if line.startswith("empty")]
    assert ",,0" in line
    release.save(tmp_path / "release.json")
    document = json.loads((tmp_path / "release.json").read_text())
    assert document["content"]["columns"]["m"]["value"].count(None) == 2
    assert tc.Release.load(tmp_path / "release.json").content == release.content
    release.plot("m")


def test_a_number_that_is_hidden_cannot_be_used_by_accident():
    release = patients(0, full=0).agg(m=tc.mean("stay")).plan(epsilon=1).release()
    for use in (lambda: release.value, lambda: float(release)):
        with pytest.raises(TacitError, match=HIDDEN) as refusal:
            use()
        assert refusal.value.code == "too-noisy"
        assert "release.low" in str(refusal.value)
    assert release.low == 0
    shown = patients().agg(n=tc.count()).plan(epsilon=1).release()
    assert float(shown) == shown.value


def test_a_release_that_is_not_one_number_says_so():
    with pytest.raises(TacitError, match="3 x 6 cells"):
        float(asked().plan(epsilon=1).release())


def test_the_plan_says_from_how_many_rows_a_mean_is_shown():
    question = patients().agg(m=tc.mean("stay", spread=False), n=tc.count())
    said = {one.column: one.caution for one in question.plan(epsilon=1).forecast}
    assert said["n"] == ""
    assert HIDDEN in said["m"]
    assert "fewer than about" in said["m"]
    sure = question.plan(epsilon=1, size=10_000).forecast
    assert [one.caution for one in sure] == ["", ""]


# after the noise


def sql(text):
    return patients().sql(text).plan(epsilon=1).release()


def test_what_is_computed_of_a_hidden_value_is_missing_too():
    release = sql(
        "SELECT ward, AVG(stay) AS m, AVG(stay) * 2 AS twice, SQRT(AVG(stay)) AS root, "
        "SUM(stay) / COUNT(*) AS ratio FROM v GROUP BY ward"
    )
    for name in ("m", "twice", "root", "ratio"):
        assert hidden(release, name) == [False, True, True]
    assert by_ward(release, "twice", "high")[2] == 2 * by_ward(release, "m", "high")[2]
    assert "divisor may be noise alone" in words(release)


def test_hidden_values_come_last_in_both_orders():
    for way in ("ASC", "DESC"):
        release = sql(f"SELECT ward, AVG(stay) AS m FROM v GROUP BY ward ORDER BY m {way}")
        assert release.keys["ward"][0] == "full"


def test_having_drops_hidden_values_and_says_so():
    release = sql("SELECT ward, AVG(stay) AS m FROM v GROUP BY ward HAVING AVG(stay) >= 0")
    assert release.keys["ward"] == ("full",)
    assert "2 lines were dropped because the noise hides a value" in words(release)


def test_a_share_of_a_total_that_is_noise_is_hidden():
    data = patients(0, full=0)
    release = (
        data.sql("SELECT ward, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM v GROUP BY ward")
        .plan(epsilon=1)
        .release()
    )
    assert release["share"].value == (None,) * 3


def test_totals_of_hidden_groups_may_be_shown():
    data = patients(12, full=12)
    release = data.group_by("ward").rollup().agg(m=tc.mean("stay", spread=False)).plan(epsilon=6).release()
    shown = dict(zip(release.keys["ward"], release["m"].value, strict=True))
    assert shown["empty"] is None
    assert [group for group in shown if group is None] == [None]


# what was stored before


def test_a_release_of_an_older_version_is_shown_by_the_rule_and_written_as_it_was(tmp_path):
    release = asked().plan(epsilon=1).release()
    document = json.loads(json.dumps(release.to_json()))
    document["content"]["columns"]["m"]["value"] = [43.69] * 3  # an older version showed it
    del document["certificate"]["values"]
    loaded = tc.Release.from_json(document)
    assert hidden(loaded) == [False, True, True]
    assert json.loads(json.dumps(loaded.to_json())) == document
    loaded.save(tmp_path / "again.json")
    assert tc.Release.load(tmp_path / "again.json").content == loaded.content
