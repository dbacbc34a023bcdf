"""The pages of curation: they work without scripts, show every text as text, and keep what was filled in."""

import re
from html import unescape

import pytest

from support.html_checks import check_forms, findings
from tacit.service._times import later_text, new_secret, now_text
from tacit.service.access import SESSION_COOKIE, digest_of_secret
from unit.service.curation.conftest import DECLARED
from unit.service.curation.test_requests import ALLOTMENT, GROWTH, approved, made, written

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}"


class Browser:
    """A person with a session who reads pages and sends the forms on them."""

    def __init__(self, house, name):
        self.house, self.secret, self.csrf = house, new_secret(), new_secret()
        with house.service.database.change() as change:
            change.run(
                "INSERT INTO sessions (digest, person, csrf, created, expires) VALUES (?, ?, ?, ?, ?)",
                digest_of_secret(self.secret), house.people[name], self.csrf, now_text(), later_text(hours=1),
            )  # fmt: skip

    def get(self, path):
        return self.house.call("GET", path, headers={"cookie": f"{SESSION_COOKIE}={self.secret}"})

    def post(self, path, **fields):
        headers = {"cookie": f"{SESSION_COOKIE}={self.secret}"}
        return self.house.call("POST", path, headers=headers, data={"csrf": self.csrf, **fields})


def hidden(page):
    """Return the hidden fields of the form with the wizard's state."""
    return {
        name: unescape(value)
        for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page)
    }


def step(browser, path, page, **fields):
    assert (findings(page), check_forms(page)) == ([], [])
    known = {name: one for name, one in hidden(page).items() if name in {"state", "step", "page"}}
    return browser.post(path, **known, **fields)


@pytest.fixture
def browsers(house, visits):
    assert visits
    return {name: Browser(house, name) for name in house.people}


def test_the_wizard_declares_a_dataset_step_by_step(house, people):
    assert people
    cora = Browser(house, "cora")
    page = cora.get("/declare")
    assert page.status_code == 200, page.text
    page = step(cora, "/declare", page.text, source="visits", name="stays", title="Stays", about="One year.")
    assert "Who is protected?" in page.text, page.text
    page = step(cora, "/declare", page.text, unit="patient_id", adjacency="add/remove", per="")
    assert "from what everybody knows" in page.text
    columns = [
        (one, int(place)) for place, one in enumerate(re.findall(r"<legend>(\w+)</legend>", page.text))
    ]
    places = dict(columns)
    fields = {
        f"low-{places['age']}": "0", f"high-{places['age']}": "120", f"kind-{places['age']}": "number",
        f"keys-{places['hospital']}": "North\nSouth", f"kind-{places['hospital']}": "text",
        f"never_null-{places['age']}": "yes",
    }  # fmt: skip
    page = step(cora, "/declare", page.text, **fields)
    assert "Rows beyond a limit are dropped" in page.text, page.text
    page = step(cora, "/declare", page.text, rows="7", groups="", per_group="")
    assert "can still see afterwards whether the budget of the dataset fell" in page.text, page.text
    page = step(cora, "/declare", page.text, epsilon="2", delta="", rho="", largest="1", lag="",
                record="words", shows_stored="yes", do="show")  # fmt: skip
    assert "by at most a factor of 7.39" in page.text, page.text
    assert house.service.database.rows("SELECT * FROM datasets") == []
    page = step(cora, "/declare", page.text, epsilon="2", delta="", rho="", largest="1", lag="",
                record="words", shows_stored="yes")  # fmt: skip
    assert "Nothing is declared yet" in page.text
    assert house.service.ledger.accounts() == []
    answer = step(cora, "/declare", page.text)
    assert (answer.status_code, answer.headers["location"]) == (303, "/datasets/stays"), answer.text
    policy = house.service.dataset("stays").policy
    assert policy["bounds"] == {"age": ["0", "120"]}
    assert policy["keys"] == {"hospital": ["North", "South"]}
    assert (policy["types"], policy["never_null"], policy["limits"]) == ({}, ["age"], {"rows": 7})
    account = house.service.ledger.account("stays")
    assert (account.budget.epsilon, account.per_charge.epsilon) == (2, 1)
    assert cora.get("/datasets/stays").status_code == 200


@pytest.fixture
def other_kinds(house, tmp_path):
    from tacit.service import ListedSource

    (tmp_path / "points.csv").write_text("who,lat,lon\na,1.5,2\nb,1,2\n")
    (tmp_path / "edges.csv").write_text("from,to\na,b\nb,c\n")
    for name, kind in (("points", "points"), ("edges", "graph")):
        place = str(tmp_path / f"{name}.csv")
        house.service.settings.sources[name] = ListedSource(name, place, kind=kind)


@pytest.mark.parametrize(
    ("source", "unit", "declared", "found"),
    [
        ("points", "who",
         {"lat": "lat", "lon": "lon", "south": "0", "west": "-1/2", "north": "3", "east": "4"},
         {"lat": "lat", "lon": "lon", "box": [["0", "-1/2"], ["3", "4"]]}),
        ("edges", "edge", {"source_column": "from", "target_column": "to", "nodes": "3", "degree_bound": ""},
         {"source_column": "from", "target_column": "to", "nodes": 3}),
    ],
)  # fmt: skip
def test_the_wizard_declares_other_kinds(house, people, other_kinds, source, unit, declared, found):
    assert people
    assert other_kinds is None
    cora = Browser(house, "cora")
    page = step(cora, "/declare", cora.get("/declare").text, source=source, name="mine", title="", about="")
    page = step(cora, "/declare", page.text, unit=unit, per="", adjacency="add/remove")
    assert page.status_code == 200, page.text
    page = step(cora, "/declare", page.text, **declared)
    if unit == "who":
        page = step(cora, "/declare", page.text, rows="2", groups="", per_group="")
    page = step(cora, "/declare", page.text, epsilon="2", record="words", shows_stored="yes")
    assert "Nothing is declared yet" in page.text, page.text
    answer = step(cora, "/declare", page.text)
    assert answer.status_code == 303, answer.text
    opened = house.service.dataset("mine")
    assert (opened.kind, opened.policy["declared"]) == ("points" if source == "points" else "graph", found)
    shown = cora.get("/datasets/mine")
    assert shown.status_code == 200, shown.text
    change = cora.get("/datasets/mine/change")
    assert change.status_code == 200, change.text


def test_the_wizard_shows_a_refusal_at_its_step_with_what_was_written(house, people):
    assert people
    cora = Browser(house, "cora")
    page = cora.get("/declare").text
    wrong = step(cora, "/declare", page, source="visits", name="Not A Name", title=HOSTILE, about="")
    assert wrong.status_code == 400
    assert "Not A Name" in wrong.text
    assert "<script>alert" not in wrong.text
    page = step(cora, "/declare", page, source="visits", name="stays", title="", about="").text
    page = step(cora, "/declare", page, unit="patient_id", adjacency="add/remove", per="").text
    one = step(cora, "/declare", page, **{"low-3": "5", "kind-3": "number"})
    assert one.status_code == 400
    assert "has only one bound" in one.text
    assert 'value="5"' in one.text
    back = step(cora, "/declare", page, do="back")
    assert "Who is protected?" in back.text
    assert house.service.database.rows("SELECT * FROM datasets") == []


@pytest.mark.parametrize(
    "state",
    [
        '{"of_tables": {"a": 1.5}}',
        '{"of_tables": {"a": {"rows": "x"}}}',
        '{"columns": {"a": [1.5]}}',
        "[]",
        "{",
        '{"tables": [1]}',
        '{"columns": 3}',
        '{"tables": [{"name": 1}]}',
        '"x"',
    ],
)
def test_a_forged_state_of_the_wizard_is_refused(house, people, state):
    assert people
    cora = Browser(house, "cora")
    for name in ("source", "unit", "columns", "limits", "budget", "review", "answers", "x"):
        answer = cora.post("/declare", state=state, step=name, page="0")
        assert answer.status_code == 400, answer.text
    assert cora.post("/declare", step="review", page="0").status_code == 400
    assert house.service.database.rows("SELECT * FROM datasets") == []


def test_the_wizard_reads_no_row(house, people, runner, monkeypatch):
    assert people
    kinds = []
    real = type(house.service).ask_runner

    async def watched(self, kind, document):
        kinds.append((kind, document))
        return await real(self, kind, document)

    monkeypatch.setattr(type(house.service), "ask_runner", watched)
    cora = Browser(house, "cora")
    page = step(
        cora, "/declare", cora.get("/declare").text, source="visits", name="stays", title="", about=""
    )
    assert page.status_code == 200
    assert kinds == [("describe", {"source": "visits"})]
    assert runner


def test_policy_2_is_written_in_the_browser_and_shows_its_diff(house, browsers):
    cora = browsers["cora"]
    page = cora.get("/datasets/visits/change")
    assert page.status_code == 200, page.text
    names = re.findall(r"<legend>(\w+)</legend>", page.text)
    fields = {f"kind-{names.index('age')}": "number", f"low-{names.index('age')}": "0"}
    fields[f"high-{names.index('age')}"] = "110"
    fields[f"keys-{names.index('hospital')}"] = "North\nSouth\n(missing)"
    page = step(cora, "/datasets/visits/change", page.text, **fields)
    page = step(cora, "/datasets/visits/change", page.text, rows="5", groups="", per_group="")
    assert "Version of the data" in page.text, page.text
    page = step(cora, "/datasets/visits/change", page.text, version="2", lag="4", width="32",
                record="words", shows_stored="yes", title="Hospital visits",
                about="Visits of one year.")  # fmt: skip
    assert "<del>0 to 120</del>" in page.text, page.text
    answer = step(cora, "/datasets/visits/change", page.text)
    assert (answer.status_code, answer.headers["location"]) == (303, "/datasets/visits/policies/2"), (
        answer.text
    )
    shown = browsers["otto"].get("/datasets/visits/policies/2").text
    assert "<ins>0 to 110</ins>" in shown
    assert "North, South, missing" in shown
    assert house.service.dataset("visits").policy["keys"] == {"hospital": ["North", "South", None]}
    assert browsers["ana"].get("/datasets/visits/change").status_code == 403


def test_journey_of_a_request_in_the_browser(house, browsers):
    ana, carl = browsers["ana"], browsers["carl"]
    assert "Ask for an allotment" in ana.get("/datasets/visits").text
    wrong = ana.post("/requests", kind="allotment", dataset="visits", epsilon="x", purpose=HOSTILE)
    assert wrong.status_code == 400
    assert unescape(wrong.text).count(HOSTILE) == 1
    assert "<script>alert" not in wrong.text
    answer = ana.post("/requests", kind="allotment", dataset="visits", epsilon="1/2", delta="", rho="",
                      purpose="stay report", last_day="")  # fmt: skip
    assert answer.status_code == 303, answer.text
    place = answer.headers["location"]
    assert "nobody approves their own" in ana.get(place).text
    assert "please decide" in carl.get("/requests?state=open").text
    page = carl.get(place).text
    assert "An attacker who gave 50:50" in page
    refused = carl.post(place + "/approve", epsilon="9", delta="", rho="", last_day="")
    assert refused.status_code == 400
    assert 'value="9"' in refused.text
    assert carl.post(place + "/approve", epsilon="", delta="", rho="", last_day="").status_code == 303
    assert "stay report" in ana.get("/datasets/visits").text
    assert "stay report" not in browsers["ben"].get("/datasets/visits").text
    account = f"/accounts/visits/{house.people['ana']}/1"
    assert ana.get(account).status_code == 200
    assert "Decide" not in ana.get(account).text
    assert carl.post(account + "/freeze", reason="checked").status_code == 303
    assert "Frozen" in ana.get(account).text
    assert carl.post(account + "/last-day", reason="", last_day="2090-01-01").status_code == 400


def test_self_approval_in_the_browser_shows_the_rule(house, visits, browsers):
    request = made(house, visits["carl"], GROWTH)
    answer = browsers["carl"].post(f"/requests/{request}/approve")
    assert answer.status_code == 403
    assert "Nobody decides their own request" in answer.text


def test_a_form_of_another_site_changes_nothing(house, visits, browsers):
    request = made(house, visits["ana"], ALLOTMENT)
    before = written(house)
    browsers["cora"].csrf = "forged"
    for path in (f"/requests/{request}/approve", "/requests", "/datasets/visits/pause", "/declare"):
        answer = browsers["cora"].post(path, reason="x")
        assert answer.status_code == 403
        assert "form has expired or comes from another site" in answer.text
    assert written(house) == before


def test_hostile_texts_are_shown_as_text_everywhere(house, people):
    given = {
        **DECLARED, "title": HOSTILE, "about": HOSTILE, "keys": {"hospital": [HOSTILE, "b"], HOSTILE: ["x"]},
    }  # fmt: skip
    answer = house.call("POST", "/api/v1/datasets", people["cora"], json=given)
    assert answer.status_code == 201, answer.text
    house.call(
        "POST", "/api/v1/datasets/visits/policies", people["cora"], json={"version": 2, "about": HOSTILE}
    )
    with house.service.database.change() as change:
        change.run("UPDATE users SET shown = ?", HOSTILE)
    request = made(house, people["ana"], {**ALLOTMENT, "purpose": HOSTILE})
    account = approved(house, people["carl"], request).json()["account"]
    other = made(house, people["carl"], {**GROWTH, "statement": HOSTILE})
    house.call("POST", f"/api/v1/requests/{other}/decline", people["olga"], json={"reason": HOSTILE})
    house.call("POST", f"/api/v1/accounts/{account}/freeze", people["carl"], json={"reason": HOSTILE})
    house.call("POST", "/api/v1/datasets/visits/pause", people["carl"], json={"reason": HOSTILE})
    carl, cora = Browser(house, "carl"), Browser(house, "cora")
    paths = [
        "/datasets", "/datasets/visits", "/datasets/visits/policies", "/datasets/visits/policies/1",
        "/datasets/visits/policies/2", f"/accounts/{account}", "/requests", f"/requests/{request}",
        f"/requests/{other}", "/datasets/visits/publish", "/datasets/visits/change",
    ]  # fmt: skip
    for path in paths:
        page = carl.get(path)
        assert page.status_code == 200, (path, page.text)
        assert "<script>alert" not in page.text, path
        assert "<img src=x" not in page.text, path
        assert HOSTILE in unescape(page.text), path
        assert (findings(page.text), check_forms(page.text)) == ([], []), path
    assert cora.get("/declare").status_code == 200


@pytest.mark.parametrize(
    "path", ["/datasets", "/datasets/visits", "/requests", "/declare", "/datasets/visits/publish"]
)
def test_somebody_unknown_is_sent_to_sign_in(house, visits, path):
    assert visits
    answer = house.call("GET", path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in")


def test_a_request_begins_from_an_address_with_its_fields(browsers):
    page = browsers["ana"].get("/requests/new?dataset=visits&epsilon=1/2&purpose=" + "%3Cb%3E")
    assert page.status_code == 200
    assert 'value="1/2"' in page.text
    assert 'value="&lt;b&gt;"' in page.text
    assert browsers["ana"].get("/requests/new?dataset=nothing").status_code == 404
    assert browsers["ana"].get("/requests/new").status_code == 404
