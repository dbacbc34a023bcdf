"""What a page shows beside a refusal: the form again, as it was filled in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.service._refusals import not_found
from tacit.service.curation._allotments import show_account
from tacit.service.curation._datasets import show_dataset
from tacit.service.curation._people import analysts_of
from tacit.service.curation._publications import list_releases, release_dataset
from tacit.service.curation._requests import show_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._operations import ServiceCall


def dataset_again(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Show the dataset again."""
    return {**show_dataset(call), "written": written}


def account_again(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Show the account again."""
    return {**show_account(call), "written": written}


def request_again(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Show the request again."""
    return {**show_request(call), "written": written}


def request_form_again(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Show the form of a request again; only about a dataset that the caller may see."""
    dataset = _seen(call, written.get("dataset", ""))
    return {"dataset": dataset, "kind": written.get("kind", ""), "written": written}


def new_request(call: ServiceCall) -> dict[str, Any]:
    """Show the form of a request, with the fields that the address holds."""
    names = ("kind", "dataset", "epsilon", "delta", "rho", "purpose", "last_day", "statement")
    return request_form_again(call, {name: call.query.get(name, "")[:1000] for name in names})


def allotment_again(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Show the form of an allotment again."""
    dataset = _seen(call, call.dataset)
    return {
        "dataset": dataset,
        "written": written,
        "analysts": analysts_of(call.service.database, dataset, call.person.id),
    }


def publish_again(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Show the form of a publication again."""
    dataset = release_dataset(call, written.get("release", ""))
    return {**list_releases(call, dataset), "written": written}


def _seen(call: ServiceCall, dataset: str) -> str:
    if call.caller is None or not call.caller.roles_on(dataset):
        raise not_found()
    return call.service.dataset(dataset).name
