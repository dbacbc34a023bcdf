"""The ask page: works without scripts, offers only fixes that work, and never charges by itself."""

import html
import re

import pytest

from tacit.errors import TacitError
from tacit.service.plans import plan_of, read_ask
from tacit.service.plans._ask_page import AskPageBody, example_questions, usable_fixes, written_fields

PAGE = "/datasets/visits/ask"
SQL = "SELECT COUNT(*) AS n FROM visits"


def get(ward, who="ana"):
    return ward.call("GET", PAGE, ward.tokens[who])


def post(ward, who="ana", **fields):
    from urllib.parse import urlencode

    body = urlencode({"csrf": "", "sql": SQL, "epsilon": "1/2", **fields})
    headers = {"content-type": "application/x-www-form-urlencoded"}
    return ward.call("POST", PAGE, ward.tokens[who], content=body, headers=headers)


def fields_of(page, action):
    """Return the hidden fields of each form with an action."""
    forms = re.findall(rf'<form action="{re.escape(action)}".*?</form>', page, re.DOTALL)
    found = []
    for form in forms:
        pairs = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form)
        found.append({name: html.unescape(value) for name, value in pairs})
    return found


def test_the_page_shows_schema_keys_examples_and_the_allotment(ward):
    page = get(ward).text
    for text in ("length_of_stay", "0 to 60", "hospital", ward.account, "Show the price", "How many rows?"):
        assert text in page, text
    twin = ward.call("GET", "/api/v1" + PAGE, ward.tokens["ana"]).json()
    assert twin["accounts"][0]["left"] == "epsilon 1 of 1"
    assert {one["name"] for one in twin["tables"][0]["columns"]} >= {"age", "hospital"}


def test_every_example_can_be_planned(ward):
    for one in example_questions(ward.data):
        ward.data.sql(one["sql"]).plan(epsilon=1)
    assert len(example_questions(ward.data)) == 6


def test_posting_shows_the_card_and_a_form_that_asks_with_the_same_fields(ward):
    head = ward.service.ledger.head
    page = post(ward).text
    assert "The price of this question" in page
    assert "factor of 1.649" in page
    assert "1 more question like this one" in page
    [asks] = fields_of(page, "/queries")
    assert asks["sql"] == SQL
    assert (asks["epsilon"], asks["account"], asks["purpose"]) == ("1/2", ward.account, "care")
    assert asks["key"]
    assert asks["dataset"] == "visits"
    assert fields_of(post(ward).text, "/queries")[0]["key"] != asks["key"]
    assert ward.service.ledger.head == head


def test_a_refusal_keeps_the_fields_and_offers_a_fix_that_works(ward):
    answer = post(ward, sql="SELECT AVG(length_of_stai) AS x FROM visits", epsilon="1/4")
    assert answer.status_code == 422
    page = answer.text
    assert "SELECT AVG(length_of_stai) AS x FROM visits" in html.unescape(page)
    offered = [
        one for one in fields_of(page, PAGE) if one.get("do") == "fill" and "length_of_stay)" in one["sql"]
    ]
    assert offered
    filled = post(ward, **{k: v for k, v in offered[0].items() if k != "csrf"}).text
    assert "<textarea" in filled
    assert "SELECT AVG(length_of_stay) AS x FROM visits" in html.unescape(filled)
    assert post(ward, sql=offered[0]["sql"]).status_code == 200


@pytest.mark.parametrize(
    "sql",
    ["SELECT * FROM visits", "SELECT AVG(agee) FROM visits", "SELECT COUNT(*) FROM visit",
     "SELECT COUNT(* FROM", "DROP TABLE visits"],
)  # fmt: skip
def test_every_offered_fix_can_be_planned(ward, sql):
    opened = ward.service.dataset("visits")
    ask = {"dataset": "visits", "sql": sql, "epsilon": "1/2"}
    with pytest.raises(TacitError) as refusal:
        ward.data.sql(sql).plan(epsilon=1)
    offered = usable_fixes(opened, ask, refusal.value)
    assert offered
    for one in offered:
        ward.data.sql(one["fields"].get("sql", sql)).plan(epsilon=1)


def test_too_much_is_shown_with_what_would_fit(ward):
    page = post(ward, epsilon="2").text
    assert "not enough is left for this question" in page
    assert not fields_of(page, "/queries")
    assert any(one.get("epsilon") == "1" for one in fields_of(page, PAGE))
    assert "Request an allotment" in page


def test_fields_of_the_form_are_read_exactly(ward):
    page = post(ward, sql="SELECT icd, COUNT(*) AS n FROM visits GROUP BY icd", keys="icd: C50, J45",
                limits='{"rows": 2}', size="100", confidence="0.9")  # fmt: skip
    assert page.status_code == 200, page.text
    assert "90 %" in page.text
    assert "2 rows" in page.text


@pytest.mark.parametrize("field", ["sql", "keys", "limits", "account", "epsilon"])
def test_hostile_text_is_escaped(ward, field):
    hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    page = post(ward, **{field: hostile}).text
    assert "<script>alert" not in page
    assert "<img src=x" not in page


@pytest.mark.parametrize(
    ("who", "status"), [("cem", 403), ("dora", 403), ("zoe", 404), ("adi", 403), ("eva", 403), ("ben", 200)]
)
def test_who_sees_the_page(ward, who, status):
    assert get(ward, who).status_code == status
    assert post(ward, who).status_code == status


@pytest.mark.parametrize(
    "fields",
    [
        {"sql": "SELECT age, COUNT(*) AS n FROM visits GROUP BY age", "keys": "age: 1, 2.5, 40"},
        {"sql": "SELECT icd, COUNT(*) AS n FROM visits GROUP BY icd", "keys": 'icd: C50, "7", J45'},
        {"sql": "SELECT icd, COUNT(*) AS n FROM visits GROUP BY icd", "delta": "1e-7", "epsilon": "0.3"},
        {
            "sql": "SELECT AVG(age) AS a\nFROM visits",
            "epsilon": "",
            "within": "3",
            "confidence": "0.9",
            "size": "50",
        },
        {"sql": "SELECT COUNT(*) AS n FROM visits", "limits": '{"rows": 2}', "epsilon": "", "rho": "1/10"},
    ],
)
def test_the_form_that_asks_holds_the_question_of_the_card(ward, fields):
    assert post(ward, **fields).status_code == 200
    body = AskPageBody.model_validate({"sql": SQL, "epsilon": "1/2", **fields})
    again = AskPageBody.model_validate(written_fields(body))
    assert read_ask(again) == read_ask(body)
    shown = ward.service.dataset("visits").dataset
    assert plan_of(shown, read_ask(again)) == plan_of(shown, read_ask(body))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"advantage": "0.05"}, "right at most 52.5 % of the time instead of 50 %"),
        ({"attack": "0.01, 1/50"}, "finds at most 2 % of those of whom it is"),
        ({"belief": "0.01,0.02"}, "becomes at most 2 %"),
    ],
)
def test_a_risk_is_asked_and_shown_on_the_page(ward, fields, words):
    answer = post(ward, epsilon="", **fields)
    assert answer.status_code == 200, answer.text
    for heading in ("Risk of this plan", "Risk of your allotment", "Risk of the dataset"):
        assert heading in answer.text
    assert words in answer.text
    [(name, _)] = fields.items()
    assert f'name="{name}"' in answer.text
