"""The ledger's refusals: those that several of its modules raise, each worded once.

What the store holds and nobody can read is one of them: a damaged ledger ends in no other error.
"""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.fixes import Do, Either, Say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.accounting import Budget
    from tacit.fixes import Fix


#: What helps after every kind of damage: a good copy, and the check of it.
RESTORE = Do("restore-ledger")

#: What helps if a good copy does not exist any more.
CONTINUE = Do("continue-from-backup", statement="the latest copy is lost")


def unknown_account(name: str) -> TacitError:
    """Refuse a name that no account has."""
    return TacitError(
        "unknown-account",
        f"the ledger has no account {name!r}",
        fix=Do("create-account", account=name),
    )


def locked(where: str, seconds: float) -> TacitError:
    """Refuse a change that waited too long for another writer."""
    return TacitError(
        "ledger-locked",
        f"somebody else has been writing to {where} for more than {seconds:g} s",
        why="nothing was charged",
        fix=Either(Say("try again"), Do("wait-for-lock", seconds=30)),
    )


def run_locked(receipt: int, seconds: float) -> TacitError:
    """Refuse an instalment while another process draws one of the same run."""
    return TacitError(
        "ledger-locked",
        f"another process has been drawing an instalment of run {receipt} for more than {seconds:g} s",
        why="each instalment builds on the one before it; no instalment was drawn now",
        fix=Either(Say("try again when it has finished"), Do("wait-for-lock", seconds=600)),
    )


def release_failed(sentence: str = "the release failed after its charge", fix: str = "") -> TacitError:
    """Report whatever went wrong after the charge, in one way."""
    return TacitError(
        "release-failed",
        sentence,
        why="the charge stays, because the failure itself could reveal something about the data",
        fix=fix or "ask the curator to check the source and the log",
    )


def artifact_lost(receipt: int, part: int, digest: str, *, damaged: bool) -> TacitError:
    """Report that a long payload is gone; a second draw would be a second answer for one charge."""
    whose = f"instalment {part} of run {receipt}" if part else f"the release of receipt {receipt}"
    return TacitError(
        "artifact-lost",
        f"the artifact {digest[:16]}... of {whose} is {'damaged' if damaged else 'lost'}",
        why="it was drawn once and is never drawn again; the charge stays",
        fix=f"restore {digest} from a backup of the ledger's artifacts",
    )


def disk_full(where: str) -> TacitError:
    """Refuse a change that does not fit on the disk."""
    return TacitError(
        "disk-full",
        f"there is no room left for {where}",
        why="nothing was charged",
        fix="free some space on its disk",
    )


def read_only(where: str, *, detail: str = "", fix: Fix | str) -> TacitError:
    """Refuse a store that cannot be written."""
    return TacitError(
        "ledger-read-only",
        f"{where} cannot be written" + (f": {detail}" if detail else ""),
        why="a charge must be recorded before the data is read",
        fix=fix,
    )


def unavailable(sentence: str) -> TacitError:
    """Report a commit that broke off: nobody knows whether it was recorded."""
    return TacitError(
        "ledger-unavailable",
        sentence,
        why="nobody knows whether the change was recorded",
        fix="ask again with the same key: a charge that was recorded is not charged twice",
    )


def sealed(sentence: str) -> TacitError:
    """Refuse every change after a failed write."""
    return TacitError(
        "ledger-sealed",
        sentence,
        why="after a failed write nobody knows what is on the disk, so the ledger refuses every change until "
        "somebody has checked the disk",
        fix=Do("unseal-ledger", statement="the disk was checked"),
    )


def damaged(sentence: str) -> TacitError:
    """Refuse a ledger that is truncated or corrupt."""
    return TacitError(
        "ledger-damaged", sentence, why="a damaged ledger does not show what was spent", fix=RESTORE
    )


def tampered(sentence: str) -> TacitError:
    """Refuse a ledger in which an entry does not match the keyed chain."""
    return TacitError("ledger-tampered", sentence, why="some other program changed the ledger", fix=RESTORE)


def rolled_back(sentence: str) -> TacitError:
    """Refuse a ledger that lost entries which somebody has seen in it."""
    return TacitError(
        "ledger-rolled-back",
        sentence,
        why="an old copy has taken its place, and the totals of an old copy are too low",
        fix=Either(RESTORE, CONTINUE),
    )


def lacks(count: int, witness: str) -> TacitError:
    """Refuse a ledger that lacks an entry which somebody has seen in it; ``witness`` ends in a verb."""
    return rolled_back(f"the ledger no longer contains entry {count}, which {witness} in it")


def replaced(file: str) -> TacitError:
    """Refuse to write to a file that is not where it was when the ledger was opened."""
    return TacitError(
        "ledger-unavailable",
        f"{file} was removed or replaced while this program had it open",
        why="other programs would not see what is charged here; no answer was given",
        fix=f"put {file} back, and start this program again",
    )


def witness_failed(path: str, error: OSError) -> TacitError:
    """Refuse a charge while the witness cannot be read or written."""
    return TacitError(
        "ledger-unavailable",
        f"the witness {path} cannot be written: {error.strerror or error}",
        why="without it, nobody would notice an old copy of the ledger; nothing was charged",
        fix=Do("give-witness-file", path="a/file/you/may/write.witness"),
    )


def unwritten_witness(where: str, error: OSError) -> TacitError:
    """Report that the ledger went on from a backup, but its witness does not know it."""
    return TacitError(
        "ledger-unavailable",
        f"the witness of {where} cannot be written: {error.strerror or error}",
        why="the loss is recorded, but the witness still names an entry that is lost",
        fix="make the witness file writable, then repeat this step",
    )


def not_a_ledger(where: str, *, why: str = "", fix: Fix | str = "check the path") -> TacitError:
    """Refuse a file or a database that holds something else."""
    sentence = f"{where} is not a Tacit ledger; it was left unchanged"
    return TacitError("not-a-ledger", sentence, why=why, fix=fix)


def newer(where: str, version: int, supported: int) -> TacitError:
    """Refuse a store of a later schema."""
    return TacitError(
        "ledger-newer",
        f"{where} has schema {version}; this version of Tacit reads schemas up to {supported}",
        why="an older program could misread what a newer one recorded",
        fix="install a newer version of Tacit",
    )


def older(where: str, supported: int) -> TacitError:
    """Refuse to go on with a store of an earlier schema that this user may not upgrade."""
    return TacitError(
        "ledger-read-only",
        f"{where} must be brought up to schema {supported} first, and you may not do this",
        why="an older program could misread what this version records",
        fix="let the user who created the ledger open it once with this version of Tacit",
    )


def budget_in_words(budget: Budget) -> str:
    """Write a budget for a message: ``epsilon 1, delta 1e-06``.

    Examples
    --------
    >>> from tacit.accounting import Budget
    >>> budget_in_words(Budget(epsilon=1, delta=1e-6))
    'epsilon 1, delta 1e-06'
    """
    parts = {"epsilon": budget.epsilon, "rho": budget.rho, "delta": budget.delta or None}
    return ", ".join(f"{name} {_exact(value)}" for name, value in parts.items() if value is not None)


def _exact(value: Fraction) -> str:
    """Write a number shortly, or as a fraction where the short form is another number."""
    short = f"{float(value):.15g}"
    return short if Fraction(short) == value else str(value)


#: What Python raises where stored text, JSON or numbers are not what the ledger wrote.
UNREADABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)


@contextmanager
def readable(subject: str, *, refusals: bool = False) -> Iterator[None]:
    """Report damage where a stored value cannot be read.

    With ``refusals``, a refusal of a number counts as damage, too: the number is stored, not an argument.
    """
    try:
        yield
    except TacitError as error:
        if not refusals or error.code.startswith("ledger-"):
            raise
        raise damaged(f"{subject} cannot be read: {error.what}") from error
    except UNREADABLE as error:
        raise damaged(f"{subject} cannot be read ({type(error).__name__})") from error
