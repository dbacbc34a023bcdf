"""What curators decide: sources, datasets and their policies, accounts, requests, publications.

In reading order:

- `_amounts`: amounts, last days and reasons, read, written and explained
- `_roles`: who has which role now
- `_policies`: what is declared about a dataset, and what changed
- `_declaration`: declaring a dataset and changing its policy
- `_wizard`: the same, step by step with forms
- `_datasets`: datasets as people see them, their pauses and days
- `_accounts`: accounts, allotments and the burn-down of a budget
- `_requests`: requests, and decisions of two people
- `_publications`: releases that are published or registered
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.service._operations import ANYONE, ROLES, SIGNED_IN, Operation, Rule, needs
from tacit.service.curation import _accounts, _datasets, _declaration, _publications, _requests, _wizard
from tacit.service.curation._amounts import ReasonBody
from tacit.service.curation._policies import DatasetDeclared, PolicyChanged, protect_arguments

if TYPE_CHECKING:
    from typing import Final

__all__ = ["OPERATIONS", "protect_arguments"]

_DECLARES = needs("curator", on="service", scope="curate")
_CURATES = needs("curator", on="dataset", scope="curate")
_OVERSEES = needs("curator", "auditor", on="dataset")
_GRANTED = needs(*ROLES, on="dataset")
#: The dataset is not in the path: the function checks the role on the dataset of the request or the release.
_CURATES_SOMEWHERE = Rule(frozenset(), scope="curate")
_ACCOUNT = "/accounts/{dataset}/{person}/{number}"

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "GET", "/sources", _DECLARES, _declaration.list_sources,
        summary="List the sources that may be protected",
    ),
    Operation(
        "GET", "/sources/{source}/columns", _DECLARES, _declaration.describe_source,
        summary="Names and types of a source's columns",
    ),
    Operation(
        "GET", "/datasets", SIGNED_IN, _datasets.list_datasets, page="curation/datasets.html",
        summary="List the datasets that you may see",
    ),
    Operation(
        "POST", "/datasets", _DECLARES, _declaration.declare_dataset, body=DatasetDeclared,
        summary="Declare a dataset",
    ),
    Operation(
        "GET", "/declare", _DECLARES, _wizard.begin_declaration, page="curation/wizard.html", api=False,
    ),
    Operation(
        "POST", "/declare", _DECLARES, _wizard.continue_wizard, body=_wizard.WizardForm,
        page="curation/wizard.html", form=_wizard.wizard_form, api=False,
    ),
    Operation(
        "GET", "/datasets/{dataset}/change", _CURATES, _wizard.begin_change, page="curation/wizard.html",
        api=False,
    ),
    Operation(
        "POST", "/datasets/{dataset}/change", _CURATES, _wizard.continue_wizard, body=_wizard.WizardForm,
        page="curation/wizard.html", form=_wizard.wizard_form, api=False,
    ),
    Operation(
        "GET", "/datasets/{dataset}", _GRANTED, _datasets.show_dataset, page="curation/dataset.html",
        summary="Show a dataset, its budget and what is left",
    ),
    Operation(
        "GET", "/datasets/{dataset}/policies", _OVERSEES, _datasets.list_policies,
        page="curation/policies.html", summary="List the policies of a dataset",
    ),
    Operation(
        "POST", "/datasets/{dataset}/policies", _CURATES, _declaration.change_policy, body=PolicyChanged,
        summary="Write the next policy of a dataset",
    ),
    Operation(
        "GET", "/datasets/{dataset}/policies/{number}", _OVERSEES, _datasets.show_policy,
        page="curation/policy.html", summary="Show a policy and what it changed",
    ),
    Operation(
        "POST", "/datasets/{dataset}/pause", _CURATES, _datasets.pause_dataset, body=ReasonBody,
        page="curation/dataset.html", form=_datasets.dataset_again, summary="Take no more questions",
    ),
    Operation(
        "POST", "/datasets/{dataset}/resume", _CURATES, _datasets.resume_dataset, body=_datasets.ResumeGiven,
        page="curation/dataset.html", form=_datasets.dataset_again,
        summary="Take questions again; the lag may be raised",
    ),
    Operation(
        "POST", "/datasets/{dataset}/freeze", _CURATES, _accounts.freeze_account, body=ReasonBody,
        page="curation/dataset.html", form=_datasets.dataset_again, summary="Stop every charge to a dataset",
    ),
    Operation(
        "POST", "/datasets/{dataset}/unfreeze", _CURATES, _accounts.unfreeze_account, body=ReasonBody,
        page="curation/dataset.html", form=_datasets.dataset_again,
        summary="Allow charges to a dataset again",
    ),
    Operation(
        "GET", "/datasets/{dataset}/accounts", _GRANTED, _accounts.list_accounts,
        summary="List the accounts of a dataset: all, or your own",
    ),
    Operation(
        "POST", "/datasets/{dataset}/accounts", _CURATES, _accounts.give_allotment,
        body=_accounts.AllotmentGiven, page="curation/new_allotment.html", form=_accounts.allotment_again,
        summary="Open an allotment for a person",
    ),
    Operation(
        "GET", _ACCOUNT, _GRANTED, _accounts.show_account, page="curation/account.html",
        summary="Show an account: budget, spent, left",
    ),
    Operation(
        "POST", _ACCOUNT + "/freeze", _CURATES, _accounts.freeze_account, body=ReasonBody,
        page="curation/account.html", form=_accounts.account_again, summary="Stop every charge to an account",
    ),
    Operation(
        "POST", _ACCOUNT + "/unfreeze", _CURATES, _accounts.unfreeze_account, body=ReasonBody,
        page="curation/account.html", form=_accounts.account_again,
        summary="Allow charges to an account again",
    ),
    Operation(
        "POST", _ACCOUNT + "/last-day", _CURATES, _accounts.set_last_day, body=_accounts.LastDayGiven,
        page="curation/account.html", form=_accounts.account_again,
        summary="Change the last day of an account",
    ),
    Operation(
        "GET", "/requests", SIGNED_IN, _requests.list_requests, page="curation/requests.html",
        summary="List requests: your own, and those of datasets that you curate",
    ),
    Operation(
        "POST", "/requests", SIGNED_IN, _requests.make_request, body=_requests.RequestMade,
        page="curation/new_request.html", form=_requests.request_form_again,
        summary="Ask for an allotment, a plan, a larger budget or a fresh one",
    ),
    Operation(  # before the next one, whose path would match it
        "GET", "/requests/new", SIGNED_IN, _requests.new_request, page="curation/new_request.html", api=False,
    ),
    Operation(
        "GET", "/requests/{request}", SIGNED_IN, _requests.show_request, page="curation/request.html",
        summary="Show a request",
    ),
    Operation(
        "POST", "/requests/{request}/approve", _CURATES_SOMEWHERE, _requests.approve,
        body=_requests.RequestApproved, page="curation/request.html", form=_requests.request_again,
        summary="Approve a request of somebody else",
    ),
    Operation(
        "POST", "/requests/{request}/decline", _CURATES_SOMEWHERE, _requests.decline, body=ReasonBody,
        page="curation/request.html", form=_requests.request_again,
        summary="Decline a request of somebody else",
    ),
    Operation(
        "POST", "/requests/{request}/withdraw", SIGNED_IN, _requests.withdraw_request,
        page="curation/request.html", form=_requests.request_again, summary="Take back your own request",
    ),
    Operation(
        "GET", "/publications", ANYONE, _publications.list_publications, page="curation/publications.html",
        summary="List what is published",
    ),
    Operation(
        "POST", "/publications", _CURATES_SOMEWHERE, _publications.publish,
        body=_publications.PublicationMade, page="curation/publish.html", form=_publications.publish_again,
        summary="Publish a release",
    ),
    Operation(
        "GET", "/datasets/{dataset}/publish", _CURATES, _publications.releases_to_publish,
        page="curation/publish.html", summary="List the releases that can be published",
    ),
    Operation(
        "POST", "/publications/{publication}/withdraw", _CURATES_SOMEWHERE, _publications.withdraw,
        body=ReasonBody, summary="Withdraw a publication",
    ),
    Operation(
        "GET", "/p/{publication}", ANYONE, _publications.show_publication, page="curation/publication.html",
        summary="Show a publication",
    ),
    Operation(
        "GET", "/p/{publication}/certificate", ANYONE, _publications.publication_certificate,
        summary="The certificate of a publication",
    ),
    Operation(
        "GET", "/datasets/{dataset}/registered-releases", _OVERSEES, _publications.list_registered,
        page="curation/registered.html", summary="List the releases that were registered with a dataset",
    ),
    Operation(
        "POST", "/datasets/{dataset}/registered-releases", _CURATES, _publications.register_release,
        body=_publications.ReleaseRegistered, page="curation/registered.html",
        form=_publications.registered_again, most=_publications.MAX_RELEASE,
        summary="Register a release that was made elsewhere with the library, with its certificate",
    ),
    Operation(
        "GET", "/datasets/{dataset}/days", _GRANTED, _datasets.show_days, page="curation/days.html",
        summary="Show which days of a stream have arrived, and its series",
    ),
    Operation(
        "POST", "/datasets/{dataset}/days", _CURATES, _datasets.take_days, body=_datasets.DaysTaken,
        page="curation/days.html", form=_datasets.days_again,
        summary="Take in the rows of a stream's days, up to one of them",
    ),
    Operation(
        "GET", "/p/{publication}/release.json", ANYONE, _publications.publication_release,
        summary="A published release with its certificate, as the library reads it",
    ),
    Operation(
        "GET", "/p/{publication}/values.csv", ANYONE, _publications.publication_values,
        summary="The values of a publication as CSV",
    ),
)  # fmt: skip
