"""People, roles and audit events: what administrators and owners may do, and nobody else."""

from __future__ import annotations

import re

import pytest

from support.service_browser import PASSWORD, Browser, code_of, events, invited
from tacit.service._operations import ROLES
from tacit.service._times import now_text


@pytest.fixture
def dataset(house):
    """A dataset row, so that roles can be given on it."""
    with house.service.database.change() as change:
        for name in ("visits", "births"):
            change.run(
                "INSERT INTO datasets (name, kind, policy, created_by, created)"
                " VALUES (?, 'table', 1, 'u', ?)",
                name, now_text(),
            )  # fmt: skip
    return "visits"


@pytest.fixture
def root(house):
    """The token of an administrator."""
    house.person("root", everywhere="admin")
    return house.token("root")


def roles_of(house, name):
    rows = house.service.database.rows(
        "SELECT dataset, role FROM grants WHERE person = ? ORDER BY dataset, role", house.people[name]
    )
    return [(row["dataset"], row["role"]) for row in rows]


#: Every operation of the area for administrators.
ADMIN = [
    ("GET", "/users", None),
    ("POST", "/users", {"name": "eve"}),
    ("GET", "/users/{user}", None),
    ("POST", "/users/{user}/invite", {}),
    ("POST", "/users/{user}/disable", {}),
    ("POST", "/users/{user}/enable", {}),
    ("POST", "/users/{user}/erase", {"sure": "yes"}),
    ("POST", "/users/{user}/subject", {"subject": ""}),
    ("POST", "/users/{user}/grants", {"role": "analyst", "dataset": "visits"}),
    ("POST", "/users/{user}/grants/withdraw", {"role": "curator", "dataset": "visits"}),
]
#: Every operation of the area for owners of a dataset.
OWNER = [
    ("GET", "/datasets/visits/people", None),
    ("POST", "/datasets/visits/people", {"name": "ana", "role": "analyst"}),
    ("POST", "/datasets/visits/people/withdraw", {"user": "{user}", "role": "curator"}),
]


def ask(house, token, method, path, body):
    filled = path.replace("{user}", house.people["ana"])
    if body is not None:
        body = {name: value.replace("{user}", house.people["ana"]) for name, value in body.items()}
    return house.call(method, f"/api/v1{filled}", token, **({} if body is None else {"json": body}))


@pytest.mark.parametrize(("method", "path", "body"), ADMIN)
@pytest.mark.parametrize("role", [*ROLES, "nobody", "unknown"])
def test_each_operation_for_administrators_as_each_role(house, dataset, role, method, path, body):
    house.person("ana", visits="curator")
    house.person("bob", everywhere="" if role in {"nobody", "unknown"} else role)
    token = "" if role == "unknown" else house.token("bob")
    before = house.service.database.rows("SELECT * FROM users")
    answer = ask(house, token, method, path, body)
    if role == "admin":
        assert answer.status_code in {200, 201}, answer.text
    else:
        assert answer.status_code == (401 if role == "unknown" else 403)
        assert house.service.database.rows("SELECT * FROM users") == before
        assert roles_of(house, "ana") == [("visits", "curator")]


@pytest.mark.parametrize(("method", "path", "body"), OWNER)
@pytest.mark.parametrize("role", [*ROLES, "owner of another", "nobody", "unknown"])
def test_each_operation_for_owners_as_each_role(house, dataset, role, method, path, body):
    house.person("ana", visits="curator")
    on = {"births": "owner"} if role == "owner of another" else {"visits": "" if role == "nobody" else role}
    house.person("bob", **({} if role == "unknown" else on))
    answer = ask(house, "" if role == "unknown" else house.token("bob"), method, path, body)
    if role == "owner":
        assert answer.status_code == 200, answer.text
    else:
        expected = {"unknown": 401, "owner of another": 404, "nobody": 404}.get(role, 403)
        assert answer.status_code == expected
        assert roles_of(house, "ana") == [("visits", "curator")]


@pytest.mark.parametrize(("method", "path", "body"), [*ADMIN, *OWNER])
def test_a_token_without_the_scope_may_not(house, dataset, method, path, body):
    house.person("ana", visits="curator")
    house.person("bob", everywhere="admin owner")
    token = house.token("bob", scopes="read plan ask audit")
    assert ask(house, token, method, path, body).status_code == 403


def test_a_token_for_one_dataset_manages_nobody(house, dataset):
    house.person("bob", everywhere="admin")
    assert house.call("GET", "/api/v1/users", house.token("bob", dataset="visits")).status_code == 403


def test_an_invitation_gives_a_link_once(house, admin):
    answer = admin.form("/users", "/users", name="Ana@Example.org", shown="Ana <b>")
    assert answer.status_code == 201
    link = re.search(r"http://127.0.0.1:8340/welcome#[\w-]+", answer.text)[0]
    assert "Ana &lt;b&gt;" in answer.text
    assert code_of(link) not in admin.get("/users").text
    browser = Browser(house.app)
    assert browser.form("/welcome", "/welcome", code=link, password=PASSWORD).status_code == 303
    assert Browser(house.app).sign_in("ana@example.org").status_code == 303


def test_an_invited_person_cannot_change_names_by_the_link(house, admin):
    link = re.search(r"welcome#[\w-]+", admin.form("/users", "/users", name="ana").text)[0]
    Browser(house.app).form("/welcome", "/welcome", code=link, name="root2", password=PASSWORD)
    assert Browser(house.app).sign_in("root2").status_code == 401


def test_a_name_is_taken_once_and_plain(house, root):
    assert house.call("POST", "/api/v1/users", root, json={"name": "ana"}).status_code == 201
    for name in ("ana", "ANA ", "", "a b", "аna", "-ana", "x" * 101, "ana\n", house.people["root"]):
        answer = house.call("POST", "/api/v1/users", root, json={"name": name})
        assert answer.status_code == 400, name
    hidden = {"name": "eve", "shown": "Ro\u202eot"}
    assert house.call("POST", "/api/v1/users", root, json=hidden).status_code == 400


def test_people_are_listed_in_parts_without_a_total(house, root):
    for n in range(5):
        house.person(f"p{n}")
    names, after = [], ""
    while True:
        document = house.call("GET", f"/api/v1/users?limit=2&after={after}", root).json()
        assert set(document) == {"users", "next", "single_sign_on"}
        names += [user["name"] for user in document["users"]]
        after = document["next"]
        if not after:
            break
    assert names == ["root", "p0", "p1", "p2", "p3", "p4"]
    assert house.call("GET", "/api/v1/users?limit=2000", root).status_code == 400
    assert house.call("GET", "/api/v1/users?after=';--", root).status_code == 400


def test_a_disabled_person_is_out_at_once_and_comes_back_when_enabled(house, admin, ana):
    person = house.people["ana"]
    token = house.token("ana")
    assert house.call("GET", "/api/v1/me", token).status_code == 200
    link = re.search(r"welcome#[\w-]+", admin.form("/users", f"/users/{person}/invite").text)[0]
    admin.form("/users", f"/users/{person}/disable")
    assert ana.get("/me").status_code == 303
    assert house.call("GET", "/api/v1/me", token).status_code == 401
    assert Browser(house.app).sign_in("ana").status_code == 401
    again = Browser(house.app).form("/welcome", "/welcome", code=link, password=PASSWORD)
    assert again.status_code == 404
    assert admin.form("/users", f"/users/{person}/invite").status_code == 403
    admin.form("/users", f"/users/{person}/enable")
    assert ana.get("/me").status_code == 303
    assert house.call("GET", "/api/v1/me", token).status_code == 200
    assert Browser(house.app).sign_in("ana").status_code == 303


def test_a_person_disabled_while_the_password_is_checked_gets_no_session(house, admin, ana, monkeypatch):
    from tacit.service.access import _sign_in

    check = _sign_in.check_password

    async def meanwhile(stored, password):
        good = await check(stored, password)
        with house.service.database.change() as change:
            change.run("UPDATE users SET disabled = 1 WHERE name = 'ana'")
        return good

    monkeypatch.setattr(_sign_in, "check_password", meanwhile)
    assert Browser(house.app).sign_in("ana").status_code == 401
    assert events(house.service)[-1] == "sign-in-refused"


def test_erasing_a_person_leaves_no_name_anywhere(house, admin):
    """Neither in a table nor in the files of the database; the ledger still verifies."""
    name, shown, label = "zebulonx@example.org", "Zebulonx Quarkington", "laptop of Zebulonx"
    answer = admin.form("/users", "/users", name=name, shown=shown)
    link = re.search(r"welcome#[\w-]+", answer.text)[0]
    browser = Browser(house.app)
    browser.form("/welcome", "/welcome", code=link, password=PASSWORD)
    browser.form("/tokens", "/tokens", label=label, scopes="read", until=now_text()[:10])
    Browser(house.app).sign_in(name, "a wrong password")
    house.people["zeb"] = person = house.service.database.row("SELECT id FROM users WHERE name = ?", name)[
        "id"
    ]
    with house.service.database.change() as change:
        change.run("UPDATE users SET subject = 'https://idp Zebulonx' WHERE id = ?", person)
    token = house.token("zeb")
    folder = house.service.settings.folder
    assert any(b"ebulonx" in path.read_bytes() for path in folder.glob("service.db*"))
    assert admin.form("/users", f"/users/{person}/erase", sure="yes").status_code == 303
    assert not [path.name for path in folder.iterdir() if b"ebulonx" in path.read_bytes()]
    assert not [path.name for path in folder.iterdir() if b"Quarkington" in path.read_bytes()]
    assert browser.get("/me").status_code == 303
    assert house.call("GET", "/api/v1/me", token).status_code == 401
    row = house.service.database.row("SELECT * FROM users WHERE id = ?", person)
    assert (row["name"], row["shown"], row["password"], row["subject"]) == (person, "Erased person", "", None)
    assert not house.service.database.rows("SELECT * FROM attempts WHERE subject LIKE 'name:%'")
    assert "user-erased" in events(house.service)
    house.service.ledger.verify()
    for act in ("enable", "invite", "disable"):
        assert admin.form("/users", f"/users/{person}/{act}").status_code == 403
    assert admin.form("/users", f"/users/{person}/erase", sure="yes").status_code == 403


def test_erasing_must_be_meant(house, admin, ana):
    path = f"/users/{house.people['ana']}/erase"
    assert admin.form("/users", path).status_code == 400
    assert admin.form("/users", path, sure="no").status_code == 400
    assert ana.get("/me").status_code == 200


def test_nobody_disables_erases_or_demotes_themselves(house, admin):
    me = house.service.database.row("SELECT id FROM users")["id"]
    for path in ("disable", "subject"):
        assert admin.form("/users", f"/users/{me}/{path}").status_code == 403
    assert admin.form("/users", f"/users/{me}/erase", sure="yes").status_code == 403
    for path in ("grants", "grants/withdraw"):
        assert admin.form("/users", f"/users/{me}/{path}", role="admin", dataset="").status_code == 403
    assert admin.get("/users").status_code == 200


def test_two_administrators_cannot_demote_each_other_at_once(house, root, monkeypatch):
    """The one whose role went first is refused inside the change, although the request came in before."""
    from tacit.service import _app

    house.person("second", everywhere="admin")
    identify = _app.identify

    def demoted_meanwhile(*given):
        caller = identify(*given)
        with house.service.database.change() as change:
            change.run("DELETE FROM grants WHERE person = ?", house.people["root"])
        return caller

    monkeypatch.setattr(_app, "identify", demoted_meanwhile)
    path = f"/api/v1/users/{house.people['second']}/grants/withdraw"
    assert house.call("POST", path, root, json={"role": "admin"}).status_code == 403
    assert roles_of(house, "second") == [("", "admin")]


def test_roles_are_given_and_withdrawn(house, root, dataset):
    house.person("ana")
    path = f"/api/v1/users/{house.people['ana']}/grants"
    for _ in range(2):  # twice is as once
        given = house.call("POST", path, root, json={"role": "analyst", "dataset": "visits"})
        assert given.status_code == 200
    house.call("POST", path, root, json={"role": "auditor"})
    assert roles_of(house, "ana") == [("", "auditor"), ("visits", "analyst")]
    for code, body in [
        (404, {"role": "analyst", "dataset": "nothing"}),
        (400, {"role": "admin", "dataset": "visits"}),
        (400, {"role": "king"}),
        (400, {"role": "analyst", "dataset": "../x"}),
    ]:
        assert house.call("POST", path, root, json=body).status_code == code
    withdrawn = house.call("POST", f"{path}/withdraw", root, json={"role": "analyst", "dataset": "visits"})
    assert withdrawn.status_code == 200
    assert roles_of(house, "ana") == [("", "auditor")]
    assert house.call("POST", f"{path}/withdraw", root, json={"role": "analyst"}).status_code == 404
    assert events(house.service)[-2:] == ["role-given", "role-withdrawn"]


def test_an_owner_gives_roles_on_the_own_dataset_but_never_admin(house, dataset):
    house.person("olga", visits="owner")
    house.person("ana")
    token = house.token("olga")
    path = "/api/v1/datasets/visits/people"
    assert house.call("POST", path, token, json={"name": "ana", "role": "analyst"}).status_code == 200
    assert roles_of(house, "ana") == [("visits", "analyst")]
    assert house.call("POST", path, token, json={"name": "ana", "role": "admin"}).status_code == 400
    assert house.call("POST", path, token, json={"name": "olga", "role": "auditor"}).status_code == 403
    assert house.call("POST", path, token, json={"name": "nobody", "role": "analyst"}).status_code == 404
    own = {"user": house.people["olga"], "role": "owner"}
    assert house.call("POST", f"{path}/withdraw", token, json=own).status_code == 403
    listed = house.call("GET", path, token).json()["people"]
    assert [(one["shown"], one["role"]) for one in listed] == [("Ana", "analyst"), ("Olga", "owner")]


def test_an_owner_cannot_withdraw_what_holds_everywhere(house, dataset):
    house.person("olga", visits="owner")
    house.person("ana", everywhere="auditor")
    body = {"user": house.people["ana"], "role": "auditor"}
    path = "/api/v1/datasets/visits/people/withdraw"
    assert house.call("POST", path, house.token("olga"), json=body).status_code == 404
    assert roles_of(house, "ana") == [("", "auditor")]


def test_audit_events_are_for_auditors_and_administrators(house, dataset):
    for role in (*ROLES, "nobody"):
        house.person(role, everywhere="" if role == "nobody" else role)
        allowed = role in {"admin", "auditor"}
        answer = house.call("GET", "/api/v1/audit-events", house.token(role))
        assert answer.status_code == (200 if allowed else 403), role
    house.person("local", visits="auditor")
    assert house.call("GET", "/api/v1/audit-events", house.token("local")).status_code == 403
    assert house.call("GET", "/api/v1/audit-events").status_code == 401


def test_audit_events_come_in_parts_newest_first(house, root):
    for n in range(5):
        house.call("POST", "/api/v1/users", root, json={"name": f"p{n}"})
    first = house.call("GET", "/api/v1/audit-events?limit=3", root).json()
    assert [event["position"] for event in first["events"]] == [5, 4, 3]
    second = house.call("GET", f"/api/v1/audit-events?limit=3&after={first['next']}", root).json()
    assert [event["position"] for event in second["events"]] == [2, 1]
    assert second["next"] == ""
    event = first["events"][0]
    assert (event["what"], event["person"], event["shown"]) == ("user-created", house.people["root"], "Root")
    assert event["request"].startswith("x_")
    for after in ("x", "99999999999", "-1", "u_1"):
        assert house.call("GET", f"/api/v1/audit-events?after={after}", root).status_code == 400


def test_every_page_of_the_area_can_be_seen(house, admin, dataset):
    invited(house, admin, "ana")
    person = house.people["ana"]
    me = house.service.database.row("SELECT id FROM users WHERE name = 'root'")["id"]
    admin.form("/users", f"/users/{person}/grants", role="owner", dataset="visits")
    for path in (
        "/me",
        "/password",
        "/tokens",
        "/users",
        f"/users/{person}",
        f"/users/{me}",
        "/audit-events",
    ):
        page = admin.get(path)
        assert page.status_code == 200, path
        assert "<h1>" in page.text
    owner = Browser(house.app)
    owner.sign_in("ana")
    assert "People of visits" in owner.get("/datasets/visits/people").text
