"""What someone who knows pandas tries first, and what Tacit says then."""

import copy
import pickle

import pytest

import tacit as tc
from tacit.tables import example_visits


@pytest.fixture(scope="module")
def visits():
    return tc.protect(
        example_visits(),
        name="visits",
        unit="patient_id",
        keys={"hospital": ["Ahorn", "Birke"]},
        budget=tc.Budget(epsilon=10),
    )


def test_the_names_of_columns_are_public(visits):
    assert visits.columns == ("patient_id", "hospital", "icd", "age", "length_of_stay", "admitted")
    assert visits.with_columns(old="age > 70").columns[-1] == "old"


@pytest.mark.parametrize("name", ["head", "describe", "shape", "mean", "groupby", "value_counts", "query"])
def test_names_of_pandas_say_what_to_do(visits, name):
    for one in (visits, visits.where("age > 3")):
        with pytest.raises(tc.TacitError) as refusal:
            getattr(one, name)
        assert refusal.value.code == "not-allowed"
        assert ".agg(" in str(refusal.value.fix) or ".where(" in str(refusal.value.fix)
        assert not hasattr(one, name)
        assert pickle.loads(pickle.dumps(refusal.value)).what == refusal.value.what
    with pytest.raises(AttributeError, match="no attribute 'anything_else'"):
        _ = visits.anything_else


def test_a_column_in_brackets_is_refused_with_an_aggregate(visits):
    with pytest.raises(tc.TacitError, match="'age' is a column") as refusal:
        _ = visits["age"]
    assert str(refusal.value.fix) == '.agg(x=tc.mean("age"))'


def test_a_column_as_an_attribute_is_refused_with_an_aggregate(visits):
    for one in (visits, visits.where("age > 3")):
        with pytest.raises(tc.TacitError, match="'age' is a column") as refusal:
            _ = one.age
        assert str(refusal.value.fix) == '.agg(x=tc.mean("age"))'
        assert not hasattr(one, "age")
    for one in (visits.where("age > 3"), visits.group_by("hospital")):
        with pytest.raises(tc.TacitError) as refusal:
            _ = one["age"]
        assert str(refusal.value.fix) == '.agg(x=tc.mean("age"))'


def test_rows_cannot_be_counted_or_gone_through(visits):
    for one in (visits, visits.where("age > 3"), visits.group_by("hospital")):
        for habit in (len, iter, list):
            with pytest.raises(tc.TacitError) as refusal:
                habit(one)
            assert isinstance(refusal.value, TypeError)
            assert "tc.count()" in str(refusal.value.fix)
        assert one  # neither true nor false by a number of rows


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("release", ".plan(epsilon=0.5).release()"),
        ("to_pandas", ".plan(epsilon=0.5).release().to_pandas()"),
        ("plot", ".plan(epsilon=0.5).release().plot()"),
    ],
)
def test_a_question_says_that_it_needs_a_plan(visits, name, fix):
    question = visits.agg(n=tc.count())
    with pytest.raises(tc.TacitError, match="a question without a plan") as refusal:
        getattr(question, name)
    assert str(refusal.value.fix) == fix
    assert copy.copy(question) == question


def test_a_plan_says_that_the_answer_comes_from_a_release(visits):
    plan = visits.agg(n=tc.count()).plan(epsilon=0.5)
    for name in ("value", "to_pandas", "plot"):
        assert not hasattr(plan, name)
        with pytest.raises(AttributeError, match=r"\.release\(\) charges the budget"):
            getattr(plan, name)
    assert copy.copy(plan) == plan


def test_a_table_without_a_name_is_called_data():
    unnamed = tc.protect(example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
    with pytest.raises(tc.TacitError, match="so its table is called data") as refusal:
        unnamed.sql("SELECT COUNT(*) FROM visits")
    assert str(refusal.value.fix) == "FROM data"


def test_a_dataset_says_what_is_public_about_it(visits):
    assert repr(visits).splitlines()[:2] == [
        "dataset visits, protects each patient; left: epsilon 10 of 10",
        "tables: visits (6 columns)",
    ]
    assert repr(visits.remaining) == "epsilon 10 of 10"


def test_what_is_not_yet_a_plan_reads_as_a_sentence(visits):
    assert repr(visits.where("age > 70")).startswith("rows where age > 70, of visits; columns: patient_id,")
    grouped = visits.group_by("hospital")
    assert repr(grouped).startswith("rows of visits, in groups by hospital (2 public)")
    question = repr(grouped.agg(n=tc.count()))
    assert question.startswith("question to visits: n = count, by hospital, of visits\n")
    assert ".plan(epsilon=0.5)" in question
    assert "Fraction" not in question + repr(visits)
    assert repr(copy.copy(grouped)) == repr(grouped)
