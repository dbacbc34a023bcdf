"""Hostile bodies: whatever a field holds, the service refuses in its own words and never fails."""

import pytest

from tacit.service.curation import OPERATIONS
from unit.service.curation.conftest import DECLARED
from unit.service.curation.test_requests import ALLOTMENT, ASK, GROWTH, made, written

VALUES = [
    None, True, 0, -1, 1.5, 10**40, "", "x", "1e999", "-1", "1/0", "\u0000", "\ud800", "<b>", "../x", "=1+1",
    "a" * 3000, [], [[]], {}, {"a": {"a": 1}}, ["x"] * 50, "2026-13-45", "٣", "NaN",
]  # fmt: skip
BODIES = {
    "/datasets": DECLARED,
    "/datasets/{dataset}/policies": {
        k: v for k, v in DECLARED.items() if k in {"bounds", "keys", "limits", "title"}
    },
    "/datasets/{dataset}/accounts": {"epsilon": "1", "purpose": "p", "last_day": ""},
    "/requests": {**ALLOTMENT, "statement": "s", "ask": None},
    "/publications": {"release": "l_1", "title": "t", "about": ""},
}
POSTS = sorted({one.path for one in OPERATIONS if one.method == "POST" and one.api and one.body is not None})


def sent(house, token, path, body):
    import json

    text = json.dumps(body)  # lone surrogates and huge numbers are written as they are
    return house.call(
        "POST", f"/api/v1{path}", token, content=text, headers={"content-type": "application/json"}
    )


@pytest.mark.parametrize("path", POSTS)
def test_no_value_of_a_field_makes_the_service_fail(house, visits, path):
    request = made(house, visits["ana"], ALLOTMENT)
    made(house, visits["carl"], GROWTH)
    place = path.format(
        dataset="visits", person=house.people["ana"], number="1", request=request, publication="p_1"
    )
    operation = next(one for one in OPERATIONS if one.path == path and one.method == "POST")
    base = (
        {"person": house.people["ana"], **BODIES.get(path, {})}
        if "accounts" in path
        else BODIES.get(path, {})
    )
    if set(operation.body.model_fields) >= {"reason"}:
        base = {"reason": "r", **base}
    base = {name: one for name, one in base.items() if name in operation.body.model_fields}
    token = visits["ana" if path == "/requests" else "cora"]
    for field in operation.body.model_fields:
        for value in VALUES:
            before = written(house)
            body = {
                **base,
                field: value,
                **({"name": "other"} if path == "/datasets" and field != "name" else {}),
            }
            answer = sent(house, token, place, body)
            assert answer.status_code < 500, (field, value, answer.text)
            if answer.status_code >= 400:
                assert written(house) == before, (field, value)
                assert answer.headers["content-type"] == "application/problem+json"
    for raw in (b"", b"{", b"[]", b"null", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"\xff", b'"x"'):
        answer = house.call("POST", f"/api/v1{place}", token, content=raw)
        assert answer.status_code in {400, 404}, (raw, answer.text)


@pytest.mark.parametrize(
    "ask",
    [
        {}, {"sql": 1}, {**ASK, "epsilon": "x"}, {**ASK, "sql": "DROP TABLE visits"}, {"plan": {}},
        {**ASK, "sql": "SELECT name FROM visits"}, {"method": "x", "epsilon": "1"}, {**ASK, "more": 1},
    ],
)  # fmt: skip
def test_a_hostile_question_is_not_requested(house, visits, ask):
    before = written(house)
    body = {"kind": "plan", "dataset": "visits", "ask": ask, "purpose": "p"}
    answer = house.call("POST", "/api/v1/requests", visits["ana"], json=body)
    assert 400 <= answer.status_code < 500, answer.text
    assert written(house) == before
