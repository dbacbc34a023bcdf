"""The one error family: every refusal says what happened, why it matters and what would help."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.fixes import Fix

__all__ = ["CODES", "TacitError", "bad_parameter", "missing_file"]

#: Every stable error code with its meaning in one line; `docs/reference/errors.md` has a section for each.
CODES: Final[dict[str, str]] = {
    # parameters, every room
    "bad-parameter": "a parameter is missing, of the wrong type or out of range",
    # accounting
    "budget-exceeded": "a charge does not fit into what is left of a budget",
    "unknown-version": "a stored value was written in a format that this version of Tacit does not read",
    "adjacency-mixed": "costs under add/remove and under replace were combined",
    "no-guarantee": "the requested value or operation has no finite certified result for this cost",
    # noise
    "randomness-failed": "the operating system's random generator failed",
    "does-not-fit": "an exact integer result does not fit into 64 bits",
    # mechanisms
    "not-finite": "a value to be released is not a finite number of the kind needed",
    "unknown-category": "an answer is not one of the declared categories",
    "bad-report": "a report is not one that the survey's randomizer can have drawn",
    "run-spent": "a sparse vector run has given all its positive answers, or belongs to another process",
    # ledger
    "unknown-account": "the ledger has no account with that name",
    "account-differs": "the account exists with another unit, adjacency, budget, parent or limit",
    "account-expired": "the account's last day has passed",
    "account-frozen": "the curator has stopped every charge to the account",
    "clock-behind": "the clock is behind the latest entry, so nobody can say whether an account expired",
    "charge-too-large": "one charge is larger than the account allows for a single charge",
    "key-reused": "the key of an earlier charge was used for a different charge",
    "spent": "the receipt was already used, but no release is stored for it",
    "release-failed": "the release failed after its charge; the charge stays",
    "run-finished": "every instalment of the run was drawn",
    "instalment-lost": "an instalment was started but never stored; it is never drawn again",
    "instalment-not-drawn": "an instalment has not been drawn yet",
    "artifact-lost": "a long release is missing or damaged outside the ledger; it is never drawn again",
    "ledger-closed": "the ledger was closed",
    "ledger-sealed": "the ledger sealed itself after a failed write and refuses every change",
    "ledger-locked": "another process holds the ledger's lock",
    "ledger-unavailable": "the ledger's store cannot be reached or did not accept the change",
    "ledger-read-only": "the ledger's store cannot be written",
    "ledger-damaged": "the ledger's store is truncated or corrupt",
    "ledger-rolled-back": "the ledger lacks entries that its witness has seen",
    "ledger-tampered": "a stored entry or release does not match the keyed chain",
    "ledger-key": "the ledger's key is missing or is not the one it was made with",
    "ledger-newer": "the ledger was written by a newer Tacit",
    "not-a-ledger": "the file or database is not a Tacit ledger",
    "not-durable": "the store does not promise that a commit survives a crash",
    "disk-full": "there is no room to record the charge",
    "missing-extra": "an optional dependency is not installed",
    # explain, lab
    "cannot-write": "a file could not be written",
    # tables
    "missing-bounds": "values have no public bounds",
    "missing-limit": "nothing bounds how much one unit can contribute",
    "question-too-large": "a question has too many parts, or could form too many rows of one unit",
    "keys-missing": "groups are not public and the plan has no delta to select them privately",
    "unknown-column": "a column is not known here",
    "unknown-table": "a table is not declared",
    "unreadable-column": "a column has a type in which one row could make every query fail",
    "unknown-kind": "the kind of a column is not declared and does not follow from the context",
    "bad-expression": "an expression is not allowed, or is not of the kind that is needed",
    "bad-sql": "the text cannot be read as SQL",
    "not-allowed": "what was declared does not allow the question, or SQL does not allow a part of it",
    "bad-certificate": "a file is not a certificate that this version can read",
    "bad-release": "a file is not a release that this version can read",
    "release-or-run": "a run was asked for as one release, or a plan of one release as a run",
    "plan-differs": "a stored plan belongs to another dataset, or its public facts have changed since",
    # inference
    "too-noisy": "the noise of a release hides what was asked of it",
    # surveys
    "bad-survey": "a file is not a survey that this version can read",
    "other-survey": "a report belongs to another survey",
    "mixed-epsilons": "reports were randomized with another epsilon than the survey's",
    "invitation-reused": "an invitation has more than one report",
    # streams
    "stream-differs": "a stream's folder belongs to a stream that was declared differently, or is damaged",
    "day-outside": "a day is before the first or after the last day of a stream",
    "day-twice": "the rows of a day were appended before",
    "day-closed": "rows came in for a day that was released already",
    "day-missing": "the rows of a day, or of one before it, have not come in yet",
    "rows-twice": "a file was appended for another day before",
    "rows-differ": "the rows of a day do not have the columns of their stream",
    "not-begun": "a stream was asked for a day before a plan was begun",
    # genomes
    "bad-genotypes": "a genotype file is missing, or its header or its site list cannot be read",
    "sites-differ": "a genotype file lacks a declared variant, or has other alleles; or a list has one twice",
    # client of a service
    "service-unreachable": "a service does not answer, or an answer is not there in time",
    "service-differs": "the answer is not from a service that this version understands",
    # hospitals that train together
    "bad-message": "bytes are not a message of a study, or a message lacks what its kind needs",
    "study-differs": "a hospital has agreed to another study, or a document is not a study",
    "members-refused": "a hospital does not mask its sum for this list of members",
    "too-few-hospitals": "fewer hospitals take part than the noise of the study needs",
    # service
    "not-signed-in": "the service does not know who is asking",
    "not-permitted": "the role, the grant or the token does not allow this",
    "not-found": "there is nothing of that name that this person may see",
    "no-allotment": "the person has no account that can pay for questions to the dataset",
    "own-request": "nobody decides their own request",
    "already-decided": "the request was decided before",
    "sign-on-failed": "single sign-on did not work",
    "form-expired": "a form was not made for this session",
    "body-unreadable": "the body of a request is not strict JSON or a form",
    "body-too-large": "the body of a request is too large",
    "too-many-requests": "too many requests came in a short time",
    "dataset-paused": "the dataset takes no questions now",
    "drawer-away": "the process that reads the data does not answer",
    "service-failed": "the service failed and does not reveal the reason",
}


class TacitError(Exception):
    """What happened, why it matters and how to fix it, under a stable code.

    Parameters
    ----------
    code
        A key of `CODES`; stable across versions, so programs can rely on it.
    what
        One sentence that says what happened.
    why
        One sentence that says why it is refused.
    fix
        What would help, as data that each interface writes in its own words (`tacit.fixes`). Plain text is
        shown as it is on every interface.
    facts
        What the sentences are made of, for programs: what was charged, what is left, which column. No program
        reads the sentences.

    Examples
    --------
    >>> from tacit.fixes import Set
    >>> raise TacitError("bad-parameter", "epsilon must be positive, got -1", fix=Set(epsilon=0.5))
    Traceback (most recent call last):
    tacit.errors.TacitError: epsilon must be positive, got -1
      fix: epsilon=0.5
      code: bad-parameter
    """

    #: Whether a notebook shows the whole traceback of a refusal, and not only its four lines.
    show_traceback: ClassVar[bool] = False

    def __init__(
        self,
        code: str,
        what: str,
        *,
        why: str = "",
        fix: Fix | str = "",
        facts: Mapping[str, object] | None = None,
    ) -> None:
        from tacit.fixes import as_fix  # only a refusal needs it

        if code not in CODES:
            raise KeyError(f"unknown error code {code!r}: add it to tacit.errors.CODES and its docs page")
        self.code: Final = code
        self.what: Final = what
        self.why: Final = why
        self.fix: Final = as_fix(fix)
        self.facts: Final = dict(facts or {})
        super().__init__(what)

    def but(
        self,
        *,
        what: str | None = None,
        why: str | None = None,
        fix: Fix | str | None = None,
        **facts: object,
    ) -> TacitError:
        """Return the same refusal in other words, with further facts.

        Examples
        --------
        >>> TacitError("not-found", "no file", facts={"file": "a.csv"}).but(what="a.csv is missing").facts
        {'file': 'a.csv'}
        """
        return TacitError(
            self.code,
            self.what if what is None else what,
            why=self.why if why is None else why,
            fix=self.fix if fix is None else fix,
            facts={**self.facts, **facts},
        )

    def __str__(self) -> str:
        lines = [self.what]
        if self.why:
            lines.append(f"  why: {self.why}")
        if str(self.fix):
            lines.append(f"  fix: {self.fix}")
        lines.append(f"  code: {self.code}")
        return "\n".join(lines)

    def _render_traceback_(self, *_given: object) -> list[str]:
        """Return the lines that a notebook shows: those of the refusal, unless the traceback is wanted."""
        if not self.show_traceback:
            return f"{type(self).__name__}: {self}".splitlines()
        import traceback

        return "".join(traceback.format_exception(self)).splitlines()

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.code, self.what, self.why, self.fix, self.facts))


def _rebuild(
    code: str, what: str, why: str, fix: Fix, facts: Mapping[str, object] | None = None
) -> TacitError:
    """Rebuild a pickled error, so that refusals cross process borders intact."""
    return TacitError(code, what, why=why, fix=fix, facts=facts)


def bad_parameter(name: str, must_be: str, got: object, *, why: str = "", fix: Fix | str = "") -> TacitError:
    """Build the one sentence for a wrong parameter: ``<name> must be <must_be>, got <got>``.

    Examples
    --------
    >>> bad_parameter("epsilon", "a positive finite number", -1).what
    'epsilon must be a positive finite number, got -1'
    """
    try:
        text = repr(got)
    except ValueError:  # Python refuses to write out whole numbers of thousands of digits
        text = "a number too long to show"
    if len(text) > 80:
        text = text[:77] + "..."
    return TacitError("bad-parameter", f"{name} must be {must_be}, got {text}", why=why, fix=fix)


def missing_file(
    path: object,
    code: str = "bad-parameter",
    *,
    why: str = "",
    fix: Fix | str = "check its name and its folder",
) -> TacitError:
    """Build the one sentence for a file that is not there: ``the file <path> does not exist``.

    Examples
    --------
    >>> missing_file("visits.csv").what
    'the file visits.csv does not exist'
    """
    return TacitError(code, f"the file {path} does not exist", why=why, fix=fix)
