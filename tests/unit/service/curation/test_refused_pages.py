"""What a refusal shows: nothing that its rule protects, in bodies, headers and lengths, to anybody.

Each operation is called as a page and as JSON, about things that exist and about things that do not. It is
compared with an application of the same rules without contents: what that one refuses must look alike.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tacit.errors import TacitError
from tacit.service import _app
from tacit.service._app import all_operations
from tacit.service._refusals import problem_of
from tacit.service._rendering import render
from tacit.service._times import now_text
from tacit.service.access import digest_of_secret

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What everybody may use has nothing to protect.
OPERATIONS = [one for one in all_operations() if one.rule.roles is not None]
_FORM_COOKIE = "tacit_form=" + "c" * 50


@pytest.fixture
def settings(settings: Any) -> Any:
    return replace(settings, rate=0)


@pytest.fixture
def known(house: Any, visits: dict[str, str]) -> dict[str, str]:
    """Make one of each thing that an address can name; return their names by the part of the address."""
    ana, token = house.people["ana"], visits["ana"]
    given = {"person": ana, "epsilon": "1", "purpose": "care"}
    made = house.call("POST", "/api/v1/datasets/visits/accounts", visits["carl"], json=given)
    assert made.status_code == 201, made.text
    wish = {"kind": "allotment", "dataset": "visits", "epsilon": "1", "purpose": "secret study"}
    asked = house.call("POST", "/api/v1/requests", token, json=wish)
    assert asked.status_code == 201, asked.text
    with house.database.change() as change:
        change.run(
            "INSERT INTO queries (id, dataset, policy, person, account, ask, plan, purpose, retry_key, state,"
            " created, position) VALUES ('q_known', 'visits', 1, ?, ?, '{}', 'plan', 'secret', 'key',"
            " 'cancelled', ?, 1)",
            ana, f"visits/{ana}/1", now_text(),
        )  # fmt: skip
        change.run(
            "INSERT INTO releases (id, query, dataset, person, account, plan, document, created, shown_from,"
            " position) VALUES ('r_known', 'q_known', 'visits', ?, ?, 'plan', '{}', ?, 0, 1)",
            ana, f"visits/{ana}/1", now_text(),
        )  # fmt: skip
    row = house.database.row("SELECT id FROM tokens WHERE person = ?", ana)
    return {
        "dataset": "visits", "person": ana, "number": "1", "user": ana, "request": asked.json()["request"],
        "token": row["id"], "query": "q_known", "release": "r_known", "publication": "p_known",
        "source": "visits",
    }  # fmt: skip


ABSENT = {
    "dataset": "zzzzzz", "person": "u_nobody", "number": "1", "user": "u_nobody", "request": "r_nobody",
    "token": "t_nobody", "query": "q_nobody", "release": "r_absent", "publication": "p_absent",
    "source": "zzzzzz",
}  # fmt: skip


@pytest.fixture
def callers(house: Any, visits: dict[str, str]) -> dict[str, dict[str, str]]:
    """The headers by which callers of all kinds are known: sessions, tokens, and nothing."""
    house.person("norole")
    house.person("owen", other="owner")
    made = {"anonymous": {"cookie": _FORM_COOKIE}}
    for name in ("norole", "owen", "ana", "otto", "carl", "olga", "ada"):
        secret = f"session-of-{name}"
        with house.database.change() as change:
            change.run(
                "INSERT INTO sessions (digest, person, csrf, created, expires) VALUES (?, ?, ?, ?, ?)",
                digest_of_secret(secret), house.people[name], "f" * 40, now_text(), "2999",
            )  # fmt: skip
        made[name] = {"cookie": f"tacit_session={secret}"}
    tokens = {
        "a token to read": house.token("olga", scopes="read"),
        "an owner's token for another dataset": house.token("olga", dataset="other"),
    }
    return made | {name: {"authorization": f"Bearer {one}"} for name, one in tokens.items()}


@pytest.fixture
def bare(house: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The same rules on the same people; whoever is let through gets an error, and no page has a form."""

    def stop(_: Any) -> Any:
        raise TacitError("bad-parameter", "the rule let this through")

    dummies = [replace(one, run=stop, body=None, form=None) for one in OPERATIONS]
    monkeypatch.setattr(_app, "all_operations", lambda: dummies)
    app = _app.create_app(house.service.settings)
    yield app
    app.state.service.close()


def look(answer: httpx.Response, names: dict[str, str]) -> tuple[int, dict[str, str], str]:
    """Return all that is seen of an answer, without what the caller sent and the number of the request."""
    named = {*names.values(), *ABSENT.values()} - {"1"}
    hidden = [answer.headers["x-request-id"], *sorted(named, key=len, reverse=True)]

    def masked(text: str) -> str:
        for one in hidden:
            text = re.sub(rf"(?<![\w.-]){re.escape(one)}(?![\w-])", "*", text)
        return text

    kept = {name: masked(v) for name, v in answer.headers.items() if name != "x-request-id"}
    kept.pop("content-length", None)  # of the masked text, which is compared whole
    return answer.status_code, kept, masked(answer.text)


def addresses(names: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """List method, template and address of every operation, as a page and as JSON."""
    for one in OPERATIONS:
        path = re.sub(r"{(\w+)}", lambda part: names[part[1]], one.path)
        if one.api:
            yield one.method, f"/api/v1{one.path}", f"/api/v1{path}"
        if one.page or one.method == "POST":
            yield one.method, one.path, path


async def _compare(app: Any, bare: Any, headers: dict[str, str], known: dict[str, str], *, sees: bool) -> Any:
    differ, refused = [], 0

    def client(of: Any) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=of, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://house", headers=headers)

    async with client(app) as real, client(bare) as empty:
        pairs = zip(addresses(known), addresses(ABSENT), strict=True)
        for (method, template, path), (_, _, absent) in pairs:
            rules = await empty.request(method, path)
            is_refused = rules.status_code in {401, 403, 404} or "/sign-in?" in rules.headers.get(
                "location", ""
            )
            if sees and not is_refused:
                continue  # it would do what the caller may do
            seen = look(await real.request(method, path), known)
            refused += is_refused
            if is_refused and not _closed_form(rules) and seen != look(rules, known):
                differ.append((method, template, "rule"))
            if not sees and seen != look(await real.request(method, absent), known):
                differ.append((method, template, "absent"))
    return differ, refused


def _closed_form(rules: httpx.Response) -> bool:
    """Whether the rule let the caller through, and the form's own check refused: the form is shown again."""
    return "this form has expired" in rules.text.lower()


WITHOUT_ROLE = {"anonymous", "norole", "owen", "an owner's token for another dataset"}


@pytest.mark.parametrize(
    "name", sorted({*WITHOUT_ROLE, "ana", "otto", "carl", "olga", "ada", "a token to read"})
)
def test_what_is_refused_looks_as_if_it_were_not_there(
    house: Any, known: dict[str, str], callers: dict[str, dict[str, str]], bare: Any, name: str
) -> None:
    sees = name not in WITHOUT_ROLE
    differ, refused = asyncio.run(_compare(house.app, bare, callers[name], known, sees=sees))
    assert differ == []
    assert refused > 20


def _old_refuse(call: Any, operation: Any, refusal: TacitError, written: Any) -> Any:
    """Answer as the service did once: with the form, also to those whom the rule has refused."""
    problem = problem_of(refusal, call.id)
    document, template = {"problem": problem}, "problem.html"
    if operation.form is not None and operation.page:
        try:
            document = {**operation.form(call, written), "problem": problem}
            template = operation.page
        except TacitError:
            document = {"problem": problem}
    return _app.Response(render(template, call, document), problem["status"], media_type="text/html")


def test_a_form_for_whoever_is_refused_would_be_seen(
    house: Any,
    known: dict[str, str],
    callers: dict[str, dict[str, str]],
    bare: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_app, "_refuse", _old_refuse)
    differ, _ = asyncio.run(_compare(house.app, bare, callers["norole"], known, sees=False))
    assert {
        ("POST", "/datasets/{dataset}/pause", "absent"),
        ("POST", "/datasets/{dataset}/people", "rule"),
    } <= {one for one in differ if one[1].startswith("/datasets")}


def test_nobody_makes_a_refused_page_fail(
    house: Any, known: dict[str, str], callers: dict[str, dict[str, str]]
) -> None:
    for headers in callers.values():
        for one in OPERATIONS:
            if one.method == "POST" and one.page:
                path = re.sub(r"{(\w+)}", lambda part: known[part[1]], one.path)
                raw = b"csrf=" + b"f" * 40 + b"&zzz=1"
                assert house.call("POST", path, headers=headers, content=raw).status_code < 500, path
