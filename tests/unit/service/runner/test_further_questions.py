"""Cross tables, ranges, regressions, survival curves, synthetic rows and batches through the service."""

import csv
import io
import json
import time

import pytest
from pyarrow import parquet

import tacit as tc
from tacit.service._times import now_text
from tacit.tables import EXAMPLE_HOSPITALS, example_visits
from unit.service.runner.conftest import DECLARED

HOSPITALS = list(EXAMPLE_HOSPITALS)
MOST_SECONDS = 5.0  # of CPU, far more than a refusal takes


@pytest.fixture
def declared():
    return {**DECLARED, "budget": {"epsilon": "5", "delta": "1e-6"}}


@pytest.fixture
def ward(ward):
    """The service with a delta, and an allotment of ana's that has one."""
    account = f"visits/{ward.people['ana']}/2"
    ward.service.ledger.create_account(account, parent="visits", budget=tc.Budget(epsilon=2, delta=1e-7))
    with ward.service.database.change() as change:
        change.run(
            "INSERT INTO accounts (name, dataset, person, purpose, plan, created) VALUES (?, ?, ?, ?, ?, ?)",
            account, "visits", ward.people["ana"], "care", "", now_text(),
        )  # fmt: skip
    ward.wide = account
    return ward


@pytest.fixture
def visits():
    return tc.protect(
        example_visits(), name="visits", unit="patient_id", keys={"hospital": HOSPITALS},
        bounds={"age": (0, 120), "length_of_stay": (0, 60)}, budget=tc.Budget(epsilon=5, delta=1e-6),
    )  # fmt: skip


def book(visits):
    return visits.crosstabs(["hospital", "age"], up_to=2, bins={"age": 4})


def line(visits):
    return visits.limit(rows=1).regress("length_of_stay", on=["age"])


def curves(visits):
    rows = visits.limit(rows=1).with_columns(left="length_of_stay < 30")
    return rows.survival(time="length_of_stay", event="left", bins=range(0, 31, 3), by="hospital")


QUESTIONS = {
    "crosstabs": (book, "cross tables that agree", "hospital x age", 9 + 5 + 45),
    "prefixes": (lambda v: v.prefixes("length_of_stay", bins=12), "along one column", "running totals", 24),
    "ranges": (lambda v: v.ranges("age", bins=4, by="hospital"), "along one column", "each cell", 64),
    "hierarchy": (
        lambda v: v.hierarchy(
            ["region", "hospital"], tree={"north": HOSPITALS[:4], "south": HOSPITALS[4:]}
        ),
        "areas and their parts", "Values and intervals", 11,
    ),
    "regress": (line, "a regression table", "coefficients", 2),
    "logistic": (
        lambda v: v.limit(rows=1).regress(
            "hospital", on=["age"], kind="logistic", keys={"hospital": HOSPITALS[:2]},
            bins={"age": [0, 40, 80, 120]},
        ),
        "a regression table", "coefficients", 2,
    ),
    "survival": (curves, "survival curves", "share without the event left", 80),
    "synthesize": (
        lambda v: v.synthesize(["hospital", "age"], bins={"age": 4}, method="tables"),
        "synthetic rows are made", "hospital x age", None,
    ),
    "aim": (
        lambda v: v.synthesize(["hospital", "age", "length_of_stay"], bins={"age": 4, "length_of_stay": 5}),
        "synthetic rows are made", "length_of_stay", None,
    ),
    "batch": (
        lambda v: tc.batch(book=book(v), line=line(v)), "paid for together", "book: hospital x age", 59 + 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_plan_of_every_kind_is_priced_drawn_shown_and_checked(ward, visits, kind):
    ask, words, caption, lines = QUESTIONS[kind]
    plan = ask(visits).plan(epsilon=0.5, delta=1e-8)
    asked = {"dataset": "visits", "plan": json.loads(json.dumps(plan.to_json())), "account": ward.wide}
    card = ward.call("POST", "/api/v1/plans", ward.tokens["ana"], json=asked)
    assert card.status_code == 200, card.text
    assert card.json()["plan"] == plan.hash
    query = ward.call("POST", "/api/v1/queries", ward.tokens["ana"], json=asked)
    assert query.status_code == 202, query.text
    ward.drawing.answer()
    found = ward.get(f"/queries/{query.json()['query']}").json()
    assert found["state"] == "finished", found
    at = f"/releases/{found['release']}"
    release = tc.Release.from_json(ward.get(f"{at}.json").json())
    assert release.certificate.fields == ward.get(f"{at}/certificate").json()
    assert release.certificate.fields["plan"] == plan.hash
    checked = ward.call(
        "POST",
        "/api/v1/certificates/check",
        ward.tokens["ana"],
        json={"certificate": release.certificate.fields},
    )
    assert checked.status_code == 200, checked.text
    page = ward.call("GET", at, ward.tokens["ana"])
    assert page.status_code == 200
    assert words in page.text
    assert caption in page.text
    read = list(csv.DictReader(io.StringIO(ward.get(f"{at}.csv").text, newline="")))
    table = parquet.read_table(io.BytesIO(ward.get(f"{at}.parquet").content))
    assert len(read) == table.num_rows > 0
    assert lines is None or len(read) == lines
    covers = ward.get(at).json()["covers"]
    assert ("chance in who was included" in covers) == (kind in {"regress", "logistic", "survival"})


def test_a_file_of_several_tables_says_from_which_each_line_is(ward, visits):
    plan = tc.batch(book=book(visits), line=line(visits)).plan(epsilon=0.5, delta=1e-8)
    asked = {"dataset": "visits", "plan": plan.to_json(), "account": ward.wide}
    query = ward.call("POST", "/api/v1/queries", ward.tokens["ana"], json=asked).json()["query"]
    ward.drawing.answer()
    at = f"/releases/{ward.get(f'/queries/{query}').json()['release']}"
    release = tc.Release.from_json(ward.get(f"{at}.json").json())
    table = parquet.read_table(io.BytesIO(ward.get(f"{at}.parquet").content)).to_pylist()
    cells = [one for one in table if one["table"] == "book: hospital x age"]
    assert [one["n"] for one in cells] == list(release["book"].tables[("hospital", "age")]["n"].value)
    assert cells[-1]["hospital"] == cells[-1]["age"] == "(missing)"
    assert all(one["coefficient"] is None for one in cells)
    [slope] = [one for one in table if one["column"] == "age"]
    assert slope["coefficient"] == release["line"]["age"].value
    assert slope["n"] is None


def refused(ward, plan):
    """Return the refusal of a plan's document, after little CPU and without an entry."""
    head, begun = ward.service.ledger.head, time.process_time()
    sent = {"dataset": "visits", "plan": plan}
    answer = ward.call("POST", "/api/v1/plans", ward.tokens["ana"], json=sent)
    assert time.process_time() - begun < MOST_SECONDS
    assert ward.service.ledger.head == head
    return answer.status_code, answer.json()["code"]


def test_documents_that_take_long_to_plan_are_refused(ward, visits):
    tables = book(visits).plan(rho=0.01).to_json()
    many = {**tables, "request": {**tables["request"], "tables": [["hospital", "age"]] * 501}}
    assert refused(ward, many) == (422, "question-too-large")
    wide = {**tables["request"], "keys": {"hospital": [str(i) for i in range(60_000)]}}
    assert refused(ward, {**tables, "request": wide}) == (422, "question-too-large")
    for bins in (9_000, -9_000):  # a number of cells instead of their cuts
        cut = {**tables["request"], "tables": [["hospital", "age"]] * 8, "bins": {"age": bins}}
        assert refused(ward, {**tables, "request": cut}) == (422, "question-too-large")
    steps = visits.prefixes("age", bins=12).plan(rho=0.01).to_json()
    given = {**steps["request"]["given"], "bins": 1_024}
    long = {**steps["request"], "given": given}
    assert refused(ward, {**steps, "request": long}) == (422, "question-too-large")
    short = {**steps["request"], "given": {**given, "bins": 150}}
    each = [["a", short], ["b", short]]
    total = {"batch": each, "promised": {"rho": "1/50"}}
    assert refused(ward, {**steps, "request": total}) == (422, "question-too-large")
    rows = visits.synthesize(["hospital", "age"], bins={"age": 4}).plan(rho=0.01).to_json()
    for change in (
        {"size": 10**9},
        {"columns": ["age"] * 40},
        {"columns": ["age"] * 10**4},
        {"columns": ["age"] * 30, "up_to": 10**9},
    ):
        asked = {**rows, "request": {**rows["request"], "method": "aim", "up_to": 3, **change}}
        assert refused(ward, asked) == (422, "question-too-large")


@pytest.mark.parametrize(
    "asks", ["crosstabs", "ranges", "prefixes", "synthesize", "regress", "survival", "hierarchy", "x"]
)
@pytest.mark.parametrize(
    "rest",
    [
        {},
        {
            "tables": [[{}], 7, ["a"]],
            "keys": {"a": {}},
            "bins": [],
            "columns": [[]],
            "size": "9",
            "up_to": -1,
            "given": [],
        },
    ],
)
def test_documents_of_another_form_are_refused_without_a_fault(ward, visits, asks, rest):
    document = book(visits).plan(rho=0.01).to_json()
    for request in (
        {"asks": asks, **rest},
        {"batch": [["a", {"asks": asks, **rest}], [], 3], "promised": {}},
    ):
        status, code = refused(ward, {**document, "request": request})
        assert (status, code) in {(400, "bad-parameter"), (409, "plan-differs"), (422, "plan-differs")}, (
            status,
            code,
        )
