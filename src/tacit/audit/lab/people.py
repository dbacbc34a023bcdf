"""Bundled synthetic people: a census-like table, made by a fixed public recipe."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, SupportsIndex

import numpy as np
import numpy.typing as npt

from tacit.errors import bad_parameter
from tacit.exact import count

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DIAGNOSES", "People", "hashed_uniform", "synthetic_people", "village"]

DIAGNOSES: Final = (
    "healthy", "hypertension", "back pain", "diabetes", "asthma", "depression",
    "arthritis", "migraine", "heart failure", "cancer", "HIV", "epilepsy",
)  # fmt: skip
_WEIGHTS: Final = np.array([24, 14, 12, 10, 9, 8, 7, 6, 4, 3, 2, 1]) / 100
_POSTCODES: Final = 100
_MOST_PEOPLE: Final = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """One row for each person: four facts that a neighbour knows, two that nobody should learn.

    Attributes
    ----------
    age, sex, postcode, education
        What an attacker may know from elsewhere (quasi-identifiers); education in years.
    condition
        1 if the person has the sensitive condition, else 0.
    diagnosis
        A position in `DIAGNOSES`; sensitive too.
    """

    age: npt.NDArray[np.int64]
    sex: npt.NDArray[np.int64]
    postcode: npt.NDArray[np.int64]
    education: npt.NDArray[np.int64]
    condition: npt.NDArray[np.int64]
    diagnosis: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        for field in fields(self):
            column = np.array(getattr(self, field.name), dtype=np.int64)
            if column.shape != (len(self.age),):
                raise bad_parameter(field.name, f"one value for each of {len(self.age)} people", column.shape)
            column.flags.writeable = False
            object.__setattr__(self, field.name, column)

    def __len__(self) -> int:
        return len(self.age)

    def known(self, *names: str) -> dict[str, npt.NDArray[np.int64]]:
        """Return the quasi-identifiers, or those named, as columns."""
        return {name: getattr(self, name) for name in names or ("age", "sex", "postcode", "education")}

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Yield the people one by one, columns in the order of the class."""
        columns = (getattr(self, field.name).tolist() for field in fields(self))
        return zip(*columns, strict=True)


def hashed_uniform(index: npt.ArrayLike, stream: int) -> npt.NDArray[np.float64]:
    """Spread whole numbers evenly over [0, 1): a public hash (SplitMix64), not randomness.

    The lab's people and an attacker's query designs come from here: anyone can repeat them, and nothing
    secret depends on them. Noise that protects anybody comes from `tacit.noise`, never from this.

    Examples
    --------
    >>> hashed_uniform([0, 1, 2], stream=7).round(3).tolist()
    [0.953, 0.231, 0.355]
    """
    with np.errstate(over="ignore"):
        z = np.asarray(index, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = z + np.uint64(stream + 1) * np.uint64(0xD1B54A32D192ED03)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


def synthetic_people(n: SupportsIndex = 5000) -> People:
    """Make `n` people who do not exist, always the same ones.

    Ages, schooling and places are skewed as in a census; the condition becomes commoner with age and differs
    between places, about one person in four has it.

    Parameters
    ----------
    n
        How many people, at most a million.

    Examples
    --------
    >>> people = synthetic_people(5000)
    >>> len(people), round(float(people.condition.mean()), 2)
    (5000, 0.26)
    """
    size = count("n", n, zero=False)
    if size > _MOST_PEOPLE:
        raise bad_parameter("n", f"at most {_MOST_PEOPLE:,} people", size, fix="n=5000")
    index = np.arange(size)
    age = 18 + np.floor(73 * hashed_uniform(index, 1) ** 1.35)
    place = np.floor(_POSTCODES * hashed_uniform(index, 2) ** 1.8)
    learner = (hashed_uniform(index, 3) + hashed_uniform(index, 4)) / 2
    education = np.floor(8 + 12 * learner - np.where(age > 65, 1.5, 0))
    lean = 0.03 * (age - 52) + 1.2 * (hashed_uniform(place, 5) - 0.5) - 0.08 * (education - 13) - 1.1
    condition = hashed_uniform(index, 6) < 1 / (1 + np.exp(-lean))
    diagnosis = np.searchsorted(np.cumsum(_WEIGHTS), hashed_uniform(index, 7) * 0.999999, side="right")
    return People(
        age=age.astype(np.int64),
        sex=(hashed_uniform(index, 8) < 0.51).astype(np.int64),
        postcode=1000 + place.astype(np.int64),
        education=np.maximum(education, 6).astype(np.int64),
        condition=condition.astype(np.int64),
        diagnosis=diagnosis.astype(np.int64),
    )


def village() -> People:
    """Make the textbook case: nine people, three in each postcode; all three in 1003 have the condition.

    Examples
    --------
    >>> people = village()
    >>> people.condition[people.postcode == 1003].tolist()
    [1, 1, 1]
    """
    return People(
        age=np.array([34, 29, 41, 52, 47, 38, 61, 58, 66]),
        sex=np.array([0, 1, 0, 1, 1, 0, 0, 1, 0]),
        postcode=np.array([1001, 1001, 1001, 1002, 1002, 1002, 1003, 1003, 1003]),
        education=np.array([12, 16, 10, 13, 9, 15, 11, 14, 8]),
        condition=np.array([0, 1, 0, 1, 0, 0, 1, 1, 1]),
        diagnosis=np.array([0, 3, 1, 3, 0, 2, 3, 3, 3]),
    )
