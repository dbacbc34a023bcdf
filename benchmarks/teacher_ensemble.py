"""Teacher ensembles on digits and on Adult: a student beside the same student of noise-free votes.

Adult is not in the project; tests/support/adult.py says where to get it.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import tacit as tc

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from support.adult import CATEGORIES, adult_folder, read_adult
from support.exact_integers import exact_of_plan

SCALES = (100, 16, 20_000, 4_000, 100)  # public: of age, education, capital gain, capital loss, hours


def read_scaled(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return features by public scales and lists, and whether the income is above 50,000."""
    features, high = read_adult(path)
    numbers, words = np.split(features, [len(SCALES)], axis=1)
    lists = zip(words.T, CATEGORIES.values(), strict=True)
    kinds = [code == place for code, listed in lists for place in range(len(listed))]
    return np.column_stack([np.minimum(numbers / SCALES, 1), *kinds]), high


def compare(folder: Path, *, teachers: int, queries: int, epsilon: float, seed: int) -> tuple[float, float]:
    """Return the accuracy of the student, and of the same student taught by votes without noise."""
    X, y = read_scaled(folder / "adult.data")
    held, truth = read_scaled(folder / "adult.test")
    random = np.random.default_rng(seed)
    order = random.permutation(len(held))
    public, test = held[order[:queries]], order[queries:]
    patients = tc.learn.examples(
        X, y, unit=tc.Unit.row(), size=32_000, budget=tc.Budget(2 * epsilon, 1e-5), name=f"adult {seed}"
    )
    ensemble = tc.learn.Teachers(
        LogisticRegression(max_iter=200), data=patients, teachers=teachers, classes=[0, 1]
    )
    plan = ensemble.label(public).plan(epsilon=epsilon, delta=1e-5)
    noisy = plan.release()
    student = LogisticRegression(C=0.3, max_iter=500)
    exact = exact_of_plan(plan)[0]
    plain = (2 * np.array(exact) > teachers).astype(int)
    scores = (noisy.student(student, public), student.fit(public, plain))
    return tuple(float((one.predict(held[test]) == truth[test]).mean()) for one in scores)  # type: ignore[return-value]


def compare_digits(*, teachers: int, queries: int, epsilon: float, seed: int) -> tuple[float, float]:
    """Return the same for scikit-learn's digits: 1,000 private, 400 public, nearest-neighbour teachers."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    private, public, test = order[:1000], X[order[1000:1400]], order[1400:]
    data = tc.learn.examples(
        X[private], y[private], unit=tc.Unit.row(), size=1_000, budget=tc.Budget(3 * epsilon, 1e-5),
        name=f"digits {seed}",
    )  # fmt: skip
    ensemble = tc.learn.Teachers(KNeighborsClassifier(1), data=data, teachers=teachers, classes=range(10))
    asked = tc.learn.representatives(public, queries)
    rest = np.delete(public, asked, axis=0)
    plan = ensemble.label(public[asked]).plan(epsilon=epsilon, delta=1e-5)
    noisy = plan.release().content
    exact = np.array(exact_of_plan(plan)[0]).argmax(axis=1)
    plain = replace(noisy, labels=tuple(exact.tolist()))
    scores = [one.student(SVC(C=10), public[asked], more=rest, spread=7) for one in (noisy, plain)]
    return tuple(float((one.predict(X[test]) == y[test]).mean()) for one in scores)  # type: ignore[return-value]


def main() -> None:
    print("digits: epsilon, teachers x queries   student   without noise")
    for epsilon, teachers, queries in ((2, 100, 20), (8, 50, 20), (8, 50, 80)):
        found = [
            compare_digits(teachers=teachers, queries=queries, epsilon=epsilon, seed=seed)
            for seed in range(4)
        ]
        mean = np.mean(found, axis=0)
        print(f"{epsilon:15} {teachers:8} x {queries:<9} {mean[0]:9.3f} {mean[1]:15.3f}")
    folder = adult_folder()
    if folder is None:
        print("Adult is not installed: see the first lines of this file")
        return
    print("Adult, epsilon 2: teachers x queries   student   without noise   CPU s")
    for teachers, queries in ((100, 600), (100, 1200), (250, 1200)):
        started = time.process_time()
        found = np.array(
            [compare(folder, teachers=teachers, queries=queries, epsilon=2, seed=seed) for seed in range(3)]
        )
        mean = found.mean(axis=0)
        spent = (time.process_time() - started) / len(found)
        print(f"{teachers:25} x {queries:<7}   {mean[0]:7.3f}   {mean[1]:13.3f}   {spent:5.1f}")


if __name__ == "__main__":
    main()
