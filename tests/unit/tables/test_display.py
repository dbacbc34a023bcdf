"""What a plan and a release say: how large a group must be, what stands for an extreme, why no interval."""

from __future__ import annotations

import re

import pytest

import tacit as tc
from tacit.core import AnswerTable, Cells, Certificate, Release
from tacit.tables import example_visits

FIELDS = dict.fromkeys(("dataset", "mechanisms", "cost", "filter", "plan", "software", "ledger"), "")
CERTIFICATE = Certificate({**FIELDS, "schema": "tacit/certificate/1", "dataset": {"name": "visits"}})


@pytest.fixture(scope="module")
def visits():
    return tc.protect(
        example_visits(),
        name="visits",
        unit="patient_id",
        bounds={"length_of_stay": (0, 30)},
        limits={"rows": 5},
        budget=tc.Budget(epsilon=100, delta=1e-3),
    )


def answer(columns, keys=None):
    return Release(AnswerTable(keys or {}, columns, 0.95), CERTIFICATE)


def words(text):
    return re.sub(r"\s+", " ", str(text))


def test_a_notebook_shows_a_text_once(visits, monkeypatch):
    plan = visits.agg(n=tc.count()).plan(epsilon=0.1)
    in_a_terminal = str(plan)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert str(plan) == in_a_terminal != ""  # rich would display each part itself, and leave the text empty


def test_a_notebook_shows_many_cells_of_one_line_below_each_other(visits):
    narrow = visits.agg(stay=tc.histogram("length_of_stay", [0, 5, 10, 30])).plan(epsilon=0.1).release()
    assert narrow._repr_html_().count("<tr>") == 2
    wide = visits.agg(stay=tc.histogram("length_of_stay", range(0, 31, 3))).plan(epsilon=0.1).release()
    assert wide._repr_html_().count("<tr>") == 10
    assert "stay[3, 6)</bdi></td><td" in wide._repr_html_()


def test_a_plan_with_private_groups_says_how_large_a_group_must_be(visits):
    grouped = visits.group_by("icd").agg(n=tc.count_units())
    plan = grouped.plan(epsilon=2, delta=1e-6)
    told = re.search(r"groups with fewer than about (\d+) patients are usually hidden", words(plan))
    assert told
    release = plan.release()
    assert len(release) > 0
    assert min(release["n"].value) >= int(told[1])  # the noisy sizes that were shown reached what was told
    strict = grouped.plan(epsilon=2, delta=1e-12)
    assert int(re.search(r"fewer than about (\d+) patients", words(strict))[1]) > int(told[1])


def test_groups_of_single_rows_are_counted_in_rows():
    rows = tc.protect(example_visits(), unit=tc.Unit.row(), budget=tc.Budget(epsilon=9, delta=1e-3))
    plan = rows.group_by("icd").agg(n=tc.count()).plan(epsilon=1, delta=1e-6)
    assert re.search(r"fewer than about \d+ rows are usually hidden", words(plan))


@pytest.mark.parametrize(
    ("asked", "level", "extreme"), [("MAX", "0.99", "largest"), ("MIN", "0.01", "smallest")]
)
def test_an_extreme_says_that_it_is_a_quantile(visits, asked, level, extreme):
    release = visits.sql(f"SELECT {asked}(length_of_stay) AS longest FROM visits").plan(epsilon=1).release()
    assert release.notes["longest"].startswith(f"the {level} quantile of length_of_stay, not the {extreme}")
    assert f"longest: the {level} quantile" in words(release)
    assert f"longest: the {level} quantile" in release._repr_html_()


def test_what_a_column_stands_for_follows_it_through_having_and_order(visits):
    sql = "SELECT hospital, MAX(length_of_stay) AS m FROM visits GROUP BY hospital ORDER BY m DESC LIMIT 2"
    release = visits.sql(sql, keys={"hospital": ["Ahorn", "Birke", "Buche"]}).plan(epsilon=5).release()
    assert list(release.notes) == ["m"]


def test_unnamed_aggregates_are_called_what_was_asked_for(visits):
    sql = "SELECT MIN(length_of_stay), MEDIAN(length_of_stay), MAX(length_of_stay) FROM visits"
    assert [c.column for c in visits.sql(sql).plan(epsilon=1).forecast] == [
        "min_length_of_stay",
        "median_length_of_stay",
        "max_length_of_stay",
    ]


def test_a_column_without_interval_says_why_and_one_with_an_interval_does_not():
    without, with_one = Cells((7.0,), (None,), (None,)), Cells((7.0,), (5.0,), (9.0,))
    both = words(answer({"a": without, "b": with_one}))
    assert "no interval for a: the error depends on how close together the values lie" in both
    assert "95 % intervals for the noise" in both
    alone = words(answer({"a": without}))
    assert "intervals for the noise" not in alone
    assert "no interval" not in words(answer({"b": with_one}))
    picked = words(answer({"c": Cells(("I10",), (None,), (None,))}))
    assert "no interval for c: the values are not numbers" in picked


def test_noise_is_told_in_the_columns_own_units(visits):
    plan = words(visits.sql("SELECT SUM(length_of_stay) AS days FROM visits").plan(epsilon=1))
    assert "discrete Laplace, scale 150" in plan  # 5 rows of at most 30 days
    assert "sensitivity 150 (L1); values are clipped to [0, 30] and rounded to whole steps of 2^-25" in plan


def test_an_interval_is_not_broken_over_lines(visits, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    sql = "SELECT hospital, COUNT(*) AS n, AVG(length_of_stay) AS stay, SUM(length_of_stay) AS days"
    sql += " FROM visits GROUP BY hospital"
    text = str(visits.sql(sql, keys={"hospital": ["Ahorn"]}).plan(epsilon=5).release())
    table = [line for line in text.splitlines() if line.startswith("│") and "[" in line]
    assert all(line.count("[") == line.count("]") for line in table)
    assert table


def test_a_year_as_a_key_has_no_thousands(visits):
    sql = "SELECT EXTRACT(year FROM admitted) AS y, COUNT(*) AS n FROM visits GROUP BY y"
    release = visits.sql(sql, keys={"y": [2023, 2024]}).plan(epsilon=1).release()
    assert "2023" in str(release)
    assert "2,023" not in str(release) + release._repr_html_()
    assert [label.get_text() for label in release.plot().get_xticklabels()] == ["2023", "2024"]
    assert [line.split(",")[0] for line in release.to_csv().splitlines()] == ["y", "2023", "2024"]


def test_a_notebook_shows_no_private_sign(visits):
    plan = visits.agg(n=tc.count(), oldest=tc.max("age", bounds=(0, 120))).plan(epsilon=1, size=4000)
    release = plan.release()
    shown = [plan._repr_html_(), release._repr_html_(), tc.explain(plan)._repr_html_()]
    assert all("\ue000" not in one for one in [*shown, str(plan), str(release)])
    assert "white-space:nowrap" in release._repr_html_()  # an interval stays on one line


def test_a_known_error_does_not_hide_that_an_extreme_is_a_quantile(visits):
    plan = visits.agg(oldest=tc.max("age", bounds=(0, 120))).plan(epsilon=1, size=4000)
    assert plan.forecast[0].error is not None
    for text in (str(plan), plan._repr_html_(), str(tc.explain(plan))):
        plain = " ".join(text.replace("│", " ").split())
        assert "not the largest" in plain
        assert "reveal one person" in plain


def test_a_notebook_has_every_line_of_the_plan(visits):
    plan = visits.group_by("hospital").agg(n=tc.count()).plan(epsilon=1, delta=1e-6)
    html = plan._repr_html_()
    for name, text in plan.facts:
        assert f"<b>{name}</b>: {text}" in html
    assert "this promise may fail completely with probability at most 1e-06" in html
    assert f"<b>unit</b>: patient_id; hash {plan.hash[:16]}" in html
    assert "which groups exist</b>: epsilon 0.5, delta 1e-06" in html


# pictures


def drawn(picture):
    picture.canvas.draw()  # lays out and reads labels: a formula in a name would fail here
    (axes,) = picture.axes
    return axes


def test_a_picture_says_dataset_column_key_and_cost(visits):
    question = visits.group_by("hospital", keys=["Ahorn", "Birke"]).agg(n=tc.count())
    axes = drawn(question.plan(epsilon=0.5).release().plot())
    assert axes.get_title(loc="left").splitlines() == [
        "visits: n by hospital, epsilon 0.5",
        "bars: 95 % interval for the noise only",
    ]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("hospital", "n")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Ahorn", "Birke"]


def test_the_picture_of_an_empty_release_says_why_it_is_empty(visits):
    release = visits.group_by("icd").agg(n=tc.count_units()).plan(epsilon=0.001, delta=1e-12).release()
    assert len(release) == 0
    axes = drawn(release.plot())
    assert "visits: n by icd, epsilon 0.001, delta 1e-12" in axes.get_title(loc="left")
    assert "no group was large enough" in axes.texts[0].get_text().replace("\n", " ")


def test_a_picture_of_a_quantile_says_what_it_is(visits):
    question = visits.sql("SELECT MAX(length_of_stay) AS longest FROM visits")
    axes = drawn(question.plan(epsilon=1).release().plot())
    title = axes.get_title(loc="left").replace("\n", " ")
    assert "the 0.99 quantile of length_of_stay, not the largest value, because" in title
    assert axes._left_title.get_window_extent().x1 <= axes.figure.bbox.x1


def test_a_picture_of_many_odd_groups_can_be_read():
    names = tuple(f"$a_{i}^ {'long ' * 9}" for i in range(100))
    numbers = tuple(float(i) for i in range(100))
    release = answer({"n$": Cells(numbers, numbers, numbers)}, {"x$y": names})
    axes = drawn(release.plot())
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert len(labels) == 60
    assert max(map(len, labels)) <= 26
    assert "first 60 of 100 groups" in axes.get_title(loc="left")
    assert axes.figure.get_size_inches()[0] < 30


def test_a_picture_shows_itself_in_a_notebook_like_those_of_explain(visits):
    picture = visits.agg(n=tc.count()).plan(epsilon=1).release().plot()
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert type(picture) is type(tc.explain(tc.Cost.pure(1)).plot())


def test_a_histogram_is_one_picture_of_all_its_cells(visits):
    cells = tc.histogram("length_of_stay", [0, 5, 10, 30])
    axes = drawn(visits.agg(stay=cells).plan(epsilon=1).release().plot())
    assert [label.get_text() for label in axes.get_xticklabels()] == ["[0, 5)", "[5, 10)", "[10, 30]"]
    assert axes.get_ylim()[0] <= 0
    grouped = visits.group_by("hospital", keys=["Ahorn", "Birke"]).agg(stay=cells, n=tc.count())
    release = grouped.plan(epsilon=1).release()
    axes = drawn(release.plot("stay"))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["Ahorn", "Birke"]
    assert drawn(release.plot("n")).get_legend() is None


def test_of_two_keys_the_one_with_fewer_values_colours(visits):
    keys = {"hospital": ["Ahorn", "Birke"], "icd": ["E11", "I21", "J18"]}
    release = visits.group_by("hospital", "icd", keys=keys).agg(n=tc.count()).plan(epsilon=1).release()
    axes = drawn(release.plot())
    assert [label.get_text() for label in axes.get_xticklabels()] == keys["icd"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == keys["hospital"]
    assert axes.get_xlabel() == "icd"
    assert axes.get_legend().get_title().get_text() == "hospital"


def test_days_stand_on_an_axis_of_time():
    days = (*tuple(f"2024-01-{day:02}" for day in range(1, 32)), "2024-06-01")
    numbers = tuple(float(i) for i in range(32))
    axes = drawn(answer({"n": Cells(numbers, numbers, numbers)}, {"day": days}).plot())
    places = axes.lines[0].get_xdata()
    assert places[1] - places[0] == 1
    assert places[-1] - places[-2] == 122  # the gap is as wide as the time between
    assert 2 < len(axes.get_xticks()) < 20
    two = {"day": days[:4] * 2, "sex": ("f",) * 4 + ("m",) * 4}
    axes = drawn(answer({"n": Cells(numbers[:8], numbers[:8], numbers[:8])}, two).plot())
    first, second = (bars.lines[0].get_xdata() for bars in axes.containers)
    assert 0 < second[0] - first[0] < 0.5  # neither series hides the other


# a terminal that is too narrow


def test_no_number_is_cut_in_a_narrow_terminal(monkeypatch):
    numbers = {f"column_{i}": Cells((1234567.0 + i,), (1234000.0,), (1235000.0,)) for i in range(9)}
    release = answer(numbers, {"hospital": ("Ahorn",)})
    for width in ("40", "80", "160"):
        monkeypatch.setenv("COLUMNS", width)
        text = str(release)
        assert all(f"1,234,56{7 + i}" in text or f"1,234,57{i - 3}" in text for i in range(9)), width
        assert text.count("[1,234,000, 1,235,000]") == 9
        assert "\N{HORIZONTAL ELLIPSIS}" not in text


def test_a_plan_cuts_no_word_in_a_narrow_terminal(visits, monkeypatch):
    plan = visits.agg(stay=tc.mean("length_of_stay"), n=tc.count()).plan(epsilon=1, size=1000)
    for width in ("40", "80"):
        monkeypatch.setenv("COLUMNS", width)
        assert "mean(length_of_stay)" in str(plan)


def test_the_factor_of_the_odds_is_rounded_up():
    from tacit.core import odds_factor

    assert [odds_factor(e) for e in (0.5, 1, 0.001)] == ["1.649", "2.719", "1.002"]


def test_a_picked_candidate_says_why_it_has_no_interval(visits):
    best = visits.agg(price=tc.best([5, 10, 20], lambda p: tc.when(tc.col("age") >= p, p, 0)))
    text = words(best.plan(epsilon=1).release())
    assert "no interval for price: one candidate was picked, and how close the others came is private" in text
    assert "how close together the values lie" not in text


def test_a_sample_and_totals_are_part_of_what_a_question_says(visits):
    sample = visits.sample(0.25)
    grouped = sample.group_by("hospital", keys=["Ahorn", "Birke"]).rollup()
    query = grouped.agg(n=tc.count())
    for shown in (repr(sample), repr(grouped), repr(query)):
        assert "in a secret random sample of 25 % of the units" in shown
    assert all("with totals" in repr(one) for one in (grouped, query))
    assert "sample" not in repr(visits.agg(n=tc.count()))
    from tacit.tables.reading._captions import in_words

    assert "sample of ? %" in in_words(query.question, shape=True)
