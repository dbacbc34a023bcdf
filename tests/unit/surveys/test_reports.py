"""Estimates from reports: what they are called, what they cover, and how they are shown."""

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.errors import TacitError

N = 6000
RNG = np.random.default_rng(11)
SMOKES = np.where(RNG.random(N) < 0.3, "yes", "no")
SEX = RNG.choice(["f", "m", "x"], N)
REGION = RNG.choice(["north", "south"], N)
AGE = RNG.uniform(20, 80, N)
RATING = RNG.choice([1, 2, 3, 4, 5], N, p=[0.1, 0.2, 0.4, 0.2, 0.1])
ASKED = {"smokes": ["no", "yes"], "sex": ["f", "m", "x"], "age": (18, 90), "rating": range(1, 6)}
POLL = tc.survey("poll", ASKED, epsilon=12, pairs=[("smokes", "sex")], strategy="split")
FRAME = {
    "smokes": SMOKES,
    "sex": SEX,
    "age": AGE,
    "rating": RATING,
    "region": REGION,
    "income": AGE * 2 + 5.5,
}


@pytest.fixture(scope="module")
def reports():
    return POLL.randomize(FRAME, public=["region", "income"])


def test_shares_are_near_the_truth(reports):
    table = reports.estimate("smokes", of="respondents", confidence=0.9999999)
    row = table["yes"]
    assert row.low <= (SMOKES == "yes").mean() <= row.high
    assert row.high - row.low < 0.1
    assert sum(one.value for one in table) == pytest.approx(1)


def test_the_population_interval_is_wider(reports):
    both = [reports.estimate("sex", of=of)["f"] for of in ("population", "respondents")]
    widths = [row.high - row.low for row in both]
    assert widths[0] > widths[1] * 1.05
    with pytest.raises(TacitError, match='of must be "population" or "respondents"'):
        reports.estimate("sex", of="people")


def test_groups_are_public_columns(reports):
    table = reports.estimate("smokes", by="region")
    assert [(row.group, row.answer) for row in table] == [
        ("north", "no"), ("north", "yes"), ("south", "no"), ("south", "yes"),
    ]  # fmt: skip
    assert table["north", "yes"].respondents == (REGION == "north").sum()
    with pytest.raises(TacitError) as refusal:
        reports.estimate("smokes", by="town")
    assert refusal.value.code == "unknown-column"


def test_people_without_a_group_are_one_group():
    poll = tc.survey("coin", ["no", "yes"], epsilon=1)
    for values in ([1.0, float("nan"), 2.0, float("nan")], ["a", None, "b", ""]):
        reports = poll.randomize({"answer": ["no"] * 4, "group": values}, public=["group"])
        table = reports.estimate(by="group")
        assert [row.group for row in table][-1] == "(missing)"
        assert table["(missing)", "no"].respondents == 2


def test_texts_of_others_do_not_move_the_cursor():
    poll = tc.survey("coin", ["no", "yes"], epsilon=1)
    reports = poll.collect({"answer": [0, 1], "town": ["a\x1b[2J", "b"]})
    assert "\x1b" not in str(reports.estimate(by="town"))
    assert "\x1b" not in str(reports.difference(by="town"))


def test_a_cross_table_has_every_cell_both_ways_round(reports):
    table, turned = reports.crosstab("smokes", "sex"), reports.crosstab("sex", "smokes")
    assert len(table) == 6
    assert table["yes", "f"][2:] == turned["f", "yes"][2:]
    truth = ((SMOKES == "yes") & (SEX == "f")).mean()
    wide = reports.crosstab("smokes", "sex", confidence=0.9999999)["yes", "f"]
    assert wide.low <= truth <= wide.high
    margin = reports.estimate("smokes")["yes"].value
    assert sum(table["yes", sex].value for sex in "fmx") == pytest.approx(margin)
    with pytest.raises(TacitError, match="were not asked as a pair"):
        reports.crosstab("smokes", "age")
    assert "smokes / sex" in str(table)


def test_means_are_near_the_truth(reports):
    for name, values in (("age", AGE), ("rating", RATING)):
        table = reports.mean(name, of="respondents", confidence=0.9999999)
        assert table.low <= values.mean() <= table.high
        assert table.value == table[""].value
    by = reports.mean("age", by="region")
    assert {row.group for row in by} == {"north", "south"}
    with pytest.raises(TacitError, match="a mean for each group"):
        by.value  # noqa: B018


def test_a_scale_of_shares_also_has_a_mean():
    asked = {"rating": tc.surveys.question(range(1, 6), wants="shares")}
    reports = tc.survey("scale", asked, epsilon=4).randomize({"rating": RATING})
    table = reports.mean("rating", of="respondents", confidence=0.9999999)
    assert table.low <= RATING.mean() <= table.high
    assert len(reports.estimate("rating")) == 5


def test_numbers_have_no_shares_and_lists_no_mean(reports):
    with pytest.raises(TacitError, match="give a mean, not shares"):
        reports.estimate("age")
    with pytest.raises(TacitError, match="they have no mean"):
        reports.mean("smokes and sex")
    with pytest.raises(TacitError) as refusal:
        reports.estimate("weight")
    assert refusal.value.code == "unknown-column"


def test_differences_compare_groups(reports):
    shares = reports.difference("smokes", by="region", confidence=0.9999999)
    truth = (SMOKES[REGION == "south"] == "yes").mean() - (SMOKES[REGION == "north"] == "yes").mean()
    row = shares["south", "yes"]
    assert (row.group, row.other) == ("south", "north")
    assert row.low <= truth <= row.high
    ages = reports.difference("age", by="region", confidence=0.9999999)["south"]
    assert ages.low <= AGE[REGION == "south"].mean() - AGE[REGION == "north"].mean() <= ages.high
    assert "south minus north" in str(shares)
    same = POLL.randomize(FRAME | {"region": ["north"] * N}, public=["region"])
    with pytest.raises(TacitError, match="a single group"):
        same.difference("smokes", by="region")


def test_norm_sub_says_that_it_is_biased():
    poll = tc.survey("states", 40, epsilon=0.5)
    reports = poll.randomize(RNG.integers(0, 5, 2000))
    plain, normed = reports.estimate(), reports.estimate(norm_sub=True)
    assert min(row.value for row in plain) < 0
    assert min(row.value for row in normed) == 0
    assert sum(row.value for row in normed) == pytest.approx(1)
    assert "biased" in str(normed)
    assert "Estimates below 0 %" in str(plain)


def test_the_bound_on_liars_stands_beside_every_estimate(reports):
    coin = tc.survey("coin", ["no", "yes"], epsilon=1).randomize(["no"] * 100)
    assert coin.estimate().liars == pytest.approx(0.0158, abs=1e-4)
    for table in (coin.estimate(), reports.mean("age"), reports.crosstab("smokes", "sex")):
        assert "1 % dishonest respondents can move" in str(table)


@pytest.mark.parametrize("questions", [["no", "yes"], 51, 3000, (0, 1), range(1, 6)])
def test_liars_move_no_estimate_beyond_the_bound(questions):
    """A hundredth of all respondents sends the report that favours one answer most."""
    poll = tc.survey("liars", questions, epsilon=1)
    [question] = poll.questions
    randomizer = question.randomizer
    if question.gives_shares:
        most, least = 1 / float(randomizer.p - randomizer.q), 0.0
        gain = (
            1 - float(randomizer.q)
        ) * most - least  # a liar supports; an honest one does so with chance q
        assert poll.predict().liars[0] >= 0.01 * gain - 1e-12
    else:
        most = randomizer.reach + (randomizer.window_chance < 1)  # the sides of a coin lie beyond the window
        top = randomizer.unbiased([-most, most]).max()
        assert poll.predict().liars[0] >= 0.01 * (top + 1) * float(question.radius) - 1e-12


def test_nobody_answered():
    poll = tc.survey("none", ["no", "yes"], epsilon=1)
    with pytest.raises(TacitError, match="no report to estimate from"):
        poll.collect([]).estimate()
    ages = tc.survey("none", (0, 1), epsilon=1).randomize([0.5])
    with pytest.raises(TacitError, match="one report is too few"):
        ages.mean()


def test_results_are_shown_everywhere(reports):
    table = reports.estimate("smokes", by="region")
    assert "in the reports" in str(table)
    assert "<table>" in table._repr_html_()
    frame = table.to_pandas()
    assert list(frame.columns) == ["group", "answer", "value", "low", "high", "raw", "respondents"]
    assert len(frame) == 4
    assert table.to_dict()["question"] == "smokes"
    assert "95 % intervals for the population" in str(table)
    assert "the coins alone" in str(reports.mean("age", of="respondents"))
    assert "6,000 respondents" in str(reports)
    with pytest.raises(TacitError):
        table["east", "yes"]


def test_pictures_show_raw_and_corrected_shares(reports):
    picture = reports.estimate("smokes", by="region").plot()
    labels = [text.get_text() for text in picture.axes[0].get_legend().get_texts()]
    assert set(labels) == {"north", "south", "in the reports (raw)"}
    assert picture.axes[0].get_ylabel() == "share in %"
    assert reports.mean("age", by="region").plot().axes[0].get_ylabel() == "mean"
    many = tc.survey("many", 300, epsilon=1).randomize(RNG.integers(0, 300, 500)).estimate()
    assert len(many.plot().axes[0].get_xticks()) == 40
    largest = max(many, key=lambda row: row.value)
    assert str(many).splitlines()[4].startswith(str(largest.answer))
    assert "The 60 largest of 300 shares" in str(many)
    axes = picture.axes[0]
    assert reports.mean("age").plot(ax=axes) is axes


def test_regression_sees_through_the_coin():
    rng = np.random.default_rng(2)
    n = 20_000
    age = rng.uniform(-2, 2, n)
    smokes = rng.random(n) < 1 / (1 + np.exp(-(-0.5 + 0.8 * age)))
    income = 1 + 2 * smokes + 0.5 * age + rng.normal(0, 1, n)
    frame = {
        "smokes": np.where(smokes, "yes", "no"),
        "age": age,
        "income": income,
        "town": ["a", "b"] * (n // 2),
    }
    poll = tc.survey("smoking", {"smokes": ["no", "yes"]}, epsilon=2)
    reports = poll.randomize(frame, public=["age", "income", "town"])
    fit = reports.logistic("smokes", on=["age", "town"], confidence=0.9999999)
    assert fit.names == ("intercept", "age", "town=b")
    assert fit.interval("age")[0] < 0.8 < fit.interval("age")[1]
    assert fit.interval("town=b")[0] < 0 < fit.interval("town=b")[1]
    line = reports.linear("income", on=["age", "smokes"], confidence=0.9999999)
    assert line.interval("smokes=yes")[0] < 2 < line.interval("smokes=yes")[1]
    assert line.interval("age")[0] < 0.5 < line.interval("age")[1]
    turned = reports.logistic("smokes", on=["age"], answer="no")
    assert turned["age"] == pytest.approx(-reports.logistic("smokes", on=["age"])["age"], abs=1e-6)
    for wrong in (
        lambda: reports.linear("income", on=["age"]),
        lambda: reports.linear("town", on=["smokes"]),
        lambda: reports.logistic("smokes", on="age"),
        lambda: reports.logistic("smokes", on=["weight"]),
        lambda: reports.logistic("smokes", on=["age"], answer="maybe"),
    ):
        with pytest.raises(TacitError):
            wrong()


def test_a_list_of_many_answers_can_be_an_outcome():
    rng = np.random.default_rng(4)
    n = 30_000
    x = rng.integers(0, 2, n)
    truth = np.where(rng.random(n) < np.where(x == 1, 0.5, 0.2), 0, rng.integers(1, 51, n))
    reports = tc.survey("states", 51, epsilon=3).randomize({"answer": truth, "x": x}, public=["x"])
    fit = reports.logistic("answer", on=["x"], answer=0, confidence=0.9999999)
    expected = np.log(0.5 / 0.5) - np.log(0.2 / 0.8)
    assert fit.interval("x")[0] < expected < fit.interval("x")[1]


def test_a_randomized_number_can_be_an_outcome():
    rng = np.random.default_rng(6)
    x = rng.uniform(0, 1, 20_000)
    reports = tc.survey("ages", {"age": (0, 100)}, epsilon=3).randomize(
        {"age": 20 + 50 * x + rng.normal(0, 5, len(x)), "x": x}, public=["x"]
    )
    fit = reports.linear("age", on=["x"], confidence=0.9999999)
    assert fit.interval("x")[0] < 50 < fit.interval("x")[1]


def test_answers_of_different_lengths_are_refused():
    with pytest.raises(TacitError, match="as many answers to each question"):
        tc.survey("two", {"a": ["x", "y"], "b": ["x", "y"]}, epsilon=1).randomize(
            {"a": ["x"], "b": ["x", "y"]}
        )


def test_a_mean_of_a_few_coins_that_agree_has_an_interval():
    survey = tc.survey("age", {"age": (0, 100)}, epsilon=0.5)
    side = int(survey["age"].randomizer.reach) + 1
    for of in ("population", "respondents"):
        found = survey.collect({"age": [side] * 4}).mean("age", of=of)
        assert found.high - found.low > 300  # one coin stands for -154 or 254
    mixed = survey.collect({"age": [side, -side] * 500}).mean("age")
    assert mixed.high - mixed.low == pytest.approx(2 * 1.96 * 204.1 / 1000**0.5, rel=2e-3)


def test_frequent_answers_of_a_long_list_stand_out_under_their_names():
    words = tc.survey("words", [f"word {i}" for i in range(3000)], epsilon=4)
    found = words.randomize(["word 5"] * 2000 + ["word 2999"] * 1500).heavy_hitters()
    assert list(found.answers)[:2] == ["word 5", "word 2999"]  # by chance a third may follow
    with pytest.raises(tc.TacitError):
        tc.survey("ages", (18, 90), epsilon=1).randomize([20, 30]).heavy_hitters()


def test_shuffled_lists_are_charged_by_their_own_blanket():
    poll = tc.survey("poll", ["no", "yes"], epsilon=1)
    assert poll.shuffled_cost(10_000).epsilon(delta=1e-6) == pytest.approx(0.0432, abs=2e-4)
    assert poll.cost.shuffled(10_000).epsilon(delta=1e-6) > 0.05


def test_a_cross_table_is_drawn_as_a_heat_map(tmp_path):
    pair = tc.survey("pair", {"a": ["n", "y"], "b": ["x", "y", "$z$"]}, pairs=[("a", "b")], epsilon=2)
    table = pair.randomize({"a": ["n"] * 50, "b": ["x"] * 50}).crosstab("a", "b")
    table.plot().savefig(tmp_path / "cells.png")
    assert (tmp_path / "cells.png").stat().st_size > 5000


def test_a_number_is_not_a_randomized_predictor_of_a_model():
    poll = tc.survey("poll", {"age": (18, 90)}, epsilon=2)
    found = poll.randomize({"age": [30] * 50, "income": range(50)}, public=["income"])
    for fit in (lambda: found.linear("income", on=["age"]), lambda: found.logistic("age", on=["income"])):
        with pytest.raises(TacitError, match="'age' is a number"):
            fit()


def test_a_public_column_that_is_not_there_is_refused():
    poll = tc.survey("poll", {"age": (18, 90)}, epsilon=2)
    for answers in ([30], {"age": [30]}, pd.DataFrame({"age": [30]})):
        with pytest.raises(TacitError, match="no column 'region'"):
            poll.randomize(answers, public=["region"])
    with pytest.raises(TacitError, match="a list of columns"):
        poll.randomize({"age": [30]}, public="age")


def test_a_fix_is_never_an_empty_list():
    poll = tc.survey("poll", {"mood": range(1, 6)}, epsilon=2)
    found = poll.randomize([1, 2, 3])
    for ask in (lambda: found.mean(by="region"), lambda: found.mean()["north"]):
        with pytest.raises(TacitError) as refusal:
            ask()
        assert "one of:" not in str(refusal.value.fix)
    coin = tc.survey("coin", ["no", "yes"], epsilon=2)
    table = coin.randomize({"answer": ["no"] * 4, "region": ["n"] * 4}, public=["region"]).estimate(
        by="region"
    )
    with pytest.raises(TacitError) as refusal:
        table["n"]
    assert "n, yes" in str(refusal.value.fix)


def test_every_respondent_has_one_invitation():
    coin = tc.survey("coin", ["no", "yes"], epsilon=2)
    for many in (range(2), range(4)):
        with pytest.raises(TacitError, match="one for each of the 3 respondents"):
            coin.randomize(["no"] * 3, invitations=many)
