"""The application: unknown paths, headers, people who are not known."""


def test_an_unknown_path_answers_a_problem_with_all_headers(house):
    answer = house.call("GET", "/api/v1/nothing")
    assert answer.status_code == 404
    assert answer.json()["code"] == "not-found"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"


def test_a_token_names_its_person(house):
    house.person("ana", visits="analyst")
    token = house.token("ana", scopes="read plan")
    from starlette.requests import Request

    from tacit.service.access import identify

    scope = {"type": "http", "headers": [(b"authorization", f"Bearer {token}".encode())]}
    caller = identify(house.service.database, Request(scope))
    assert caller is not None
    assert (caller.name, caller.roles_on("visits"), caller.roles_on("other")) == ("Ana", {"analyst"}, set())
    assert caller.scopes == {"read", "plan"}


def test_a_page_that_does_not_exist_still_names_who_is_signed_in(house):
    house.person("ana", visits="analyst")
    headers = {"authorization": f"Bearer {house.token('ana')}"}
    page = house.call("GET", "/nothing/here", headers=headers)
    assert page.status_code == 404
    assert "Ana" in page.text
    assert "Sign in" in house.call("GET", "/nothing/here").text


def test_a_token_for_one_dataset_has_the_roles_that_its_person_has_everywhere_there_only():
    from tacit.service._operations import Caller

    caller = Caller("u_x", "Ana", {"": frozenset({"owner"}), "other": frozenset({"analyst"})}, only="visits")
    assert caller.roles == caller.roles_on("visits") == {"owner", "curator"}
    assert caller.roles_on("other") == caller.roles_on("") == frozenset()


def test_the_description_of_the_api_has_no_reference_that_leads_nowhere(house):
    description = house.call("GET", "/api/v1/openapi.json").json()

    def references(document):
        match document:
            case {"$ref": str(name)}:
                yield name
            case dict():
                for value in document.values():
                    yield from references(value)
            case list():
                for value in document:
                    yield from references(value)

    for name in references(description):
        found = description
        for part in name.removeprefix("#/").split("/"):
            found = found[part]
    budget = description["paths"]["/api/v1/datasets"]["post"]["requestBody"]["content"]["application/json"]
    assert "epsilon" in str(budget["schema"]["properties"]["budget"])
