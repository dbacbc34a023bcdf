"""The choice of a randomizer for a list of answers, by predicted variance; and randomizers from documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tacit.errors import bad_parameter
from tacit.fixes import Choose, Say
from tacit.mechanisms._linear_hashing import LinearHashing
from tacit.mechanisms._memo import Memo
from tacit.mechanisms._number_window import NumberWindow
from tacit.mechanisms._response_designs import Design
from tacit.mechanisms._subset_selection import SubsetSelection

if TYPE_CHECKING:
    from tacit.exact import Number
    from tacit.mechanisms._local_randomizer import LocalRandomizer, SupportRandomizer

_MOST_NAMED = 32  # answers in a report that a person may still read, and a device store


def choose_randomizer(epsilon: Number, size: int) -> SupportRandomizer:
    """Return the randomizer with the smaller predicted variance for a list of answers.

    The candidates are subset selection, where a report names at most 32 answers, and linear hashing. The
    choice depends on epsilon and the number of answers alone. The property `why` of the result explains it.

    Parameters
    ----------
    epsilon
        The promise to each respondent.
    size
        The number of answers.

    Examples
    --------
    >>> choose_randomizer(1, 51).describe()
    'subset selection, 13 of 51 answers'
    >>> choose_randomizer(1, 1_000_000).describe()
    'linear hashing of 1,000,000 answers to 4 values'
    """
    subset = SubsetSelection(epsilon=epsilon, size=size)
    hashing = LinearHashing(epsilon=epsilon, size=size)
    if subset.subset <= _MOST_NAMED and _variance(subset) <= _variance(hashing):
        return subset
    return hashing


def compare(randomizer: SupportRandomizer) -> str:
    """Say how a randomizer compares with the other kind and with plain randomized response."""
    odds, size = randomizer.odds, randomizer.size  # type: ignore[attr-defined]
    subset, hashing = SubsetSelection(odds=odds, size=size), LinearHashing(odds=odds, size=size)
    own = _variance(randomizer)
    lines = [f"{randomizer.describe()}: variance {own:.4g}/n for a rare answer"]
    if isinstance(randomizer, LinearHashing) and subset.subset > _MOST_NAMED:
        lines.append(f"subset selection would name {subset.subset:,} answers in each report")
    others: list[SupportRandomizer] = [subset, hashing, SubsetSelection(odds=odds, size=size, subset=1)]
    for other in others:
        if other != randomizer and f"{other.describe()}:" not in " ".join(lines):
            lines.append(f"{other.describe()}: {_variance(other):.4g}/n")
    return "; ".join(lines)


def _variance(randomizer: SupportRandomizer) -> float:
    return randomizer.variance(0, 1, sampling=False)


_KINDS: dict[str, type[LocalRandomizer]] = {
    "subset-selection": SubsetSelection,
    "linear-hashing": LinearHashing,
    "number-window": NumberWindow,
    "response-design": Design,
    "memo": Memo,
}


def randomizer_from_json(document: object) -> LocalRandomizer:
    """Rebuild a local randomizer from its document (`to_json`).

    Examples
    --------
    >>> coin = SubsetSelection(epsilon=1, size=2)
    >>> randomizer_from_json(coin.to_json()) == coin
    True
    """
    name = document.get("mechanism") if isinstance(document, Mapping) else None
    kind = _KINDS.get(str(name))
    if kind is None or not isinstance(document, Mapping):
        raise bad_parameter(
            "mechanism", "the name of a local randomizer", name, fix=Choose(tuple(_KINDS), given=str(name))
        )
    try:
        return kind.from_json(document)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise bad_parameter(
            "document",
            f"the document of a randomizer of the kind {name}",
            "another one",
            fix=Say("use the document that the survey was saved with"),
        ) from None
