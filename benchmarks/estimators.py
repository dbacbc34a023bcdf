"""Estimators at small epsilons, beside diffprivlib and interpret in environments of their own.

Accuracy on the same rows, mean over a few splits, and CPU seconds of one fit; delta is 1e-6. diffprivlib
promises epsilon without a delta, which is harder. `TACIT_ADULT` names a folder with Adult (see
tests/support/adult.py); without it the lines of boosting are left out.
"""

import sys
import time

import numpy as np
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.model_selection import train_test_split

import tacit as tc
from peers import ROOT, ask_peer, peer_python

sys.path.append(str(ROOT / "tests"))
from support.adult import CATEGORIES, CUTS, NAMES, adult_folder, read_adult

REPEATS = 5
DIFFPRIVLIB = ("diffprivlib==0.6.6", "scikit-learn==1.5.2")
INTERPRET = ("interpret-core==0.7.8", "scikit-learn")

PEER_SHAPES = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from diffprivlib.models import KMeans, GaussianNB
repeats, found = int(sys.argv[1]), {}
X, y = load_digits(return_X_y=True)
for epsilon in (1, 4):
    for size in (2000, 20000):
        scores, started = [], time.process_time()
        for k in range(repeats):
            B, c = make_blobs(size, 8, centers=5, random_state=k)
            model = KMeans(5, epsilon=epsilon, bounds=(-13, 13), random_state=k).fit(B)
            scores.append(adjusted_rand_score(c, model.predict(B)))
        found[f"blobs {size} {epsilon}"] = [np.mean(scores), (time.process_time() - started) / repeats]
    scores, started = [], time.process_time()
    for k in range(repeats):
        model = KMeans(10, epsilon=epsilon, bounds=(0, 16), random_state=k).fit(X)
        scores.append(adjusted_rand_score(y, model.predict(X)))
    found[f"digits {epsilon}"] = [np.mean(scores), (time.process_time() - started) / repeats]
    scores, started = [], time.process_time()
    for k in range(repeats):
        A, T, a, t = train_test_split(X, y, test_size=0.2, random_state=k)
        scores.append(GaussianNB(epsilon=epsilon, bounds=(0, 16), random_state=k).fit(A, a).score(T, t))
    found[f"bayes {epsilon}"] = [np.mean(scores), (time.process_time() - started) / repeats]
print(json.dumps(found))
"""

PEER_BOOSTING = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier
from sklearn.metrics import roc_auc_score
held = np.load(sys.argv[1])
A, a, T, t = (held[name] for name in ("A", "a", "T", "t"))
bounds = np.array([(0.0, float(size - 1)) for size in held["sizes"]])
found = {}
for words, more in (("default", {}), ("rate .1, 300 rounds", {"learning_rate": 0.1, "max_rounds": 300})):
    for epsilon in (0.5, 1, 4):
        started = time.process_time()
        model = DPExplainableBoostingClassifier(
            epsilon=epsilon, delta=1e-6, feature_types=["continuous"] * A.shape[1], n_jobs=1,
            privacy_bounds=bounds, **more,
        )
        model.fit(A, a)
        chance = model.predict_proba(T)[:, 1]
        found[f"{words} {epsilon}"] = [
            float(((chance > 0.5) == t).mean()), float(roc_auc_score(t, chance)),
            time.process_time() - started,
        ]
print(json.dumps(found))
"""


def declared(*arrays, size):
    return tc.learn.examples(
        *arrays, unit=tc.Unit.row(), size=size, budget=tc.Budget(epsilon=100, delta=1e-5)
    )


def line(name: str, ours: str, theirs: str = "", note: str = "") -> None:
    print(f"{name:<34}{ours:>22}{theirs:>26}   {note}", flush=True)


def repeated(fit):
    """Return the mean score over the repeats, and CPU seconds of one."""
    started = time.process_time()
    scores = [fit(k) for k in range(REPEATS)]
    return np.mean(scores, axis=0), (time.process_time() - started) / REPEATS


def blobs(size: int, epsilon: float, k: int) -> float:
    X, y = make_blobs(size, 8, centers=5, random_state=k)
    model = tc.learn.KMeans(n_clusters=5, bounds=(-13, 13), epsilon=epsilon, delta=1e-6)
    return float(adjusted_rand_score(y, model.fit(declared(X, size=size)).predict(X)))


def digits(epsilon: float, k: int) -> float:
    del k
    X, y = load_digits(return_X_y=True)
    model = tc.learn.KMeans(n_clusters=10, bounds=(0, 16), epsilon=epsilon, delta=1e-6)
    return float(adjusted_rand_score(y, model.fit(declared(X, size=1_800)).predict(X)))


def components(epsilon: float, k: int) -> list[float]:
    """Return what 2, 8 and 16 components keep of the variance, and of squared distances from 0.3 of 16."""
    del k
    X, _ = load_digits(return_X_y=True)
    model = tc.learn.PCA(bounds=(0, 16), epsilon=epsilon, delta=1e-6).fit(declared(X, size=1_800))
    way = model.mean_ - 0.3 * 16
    about = model.components_.T * model.explained_variance_ @ model.components_ + np.outer(way, way)
    return [*kept(np.cov(X.T), model.components_), *kept(around_a_point(X), best(about))]


def kept(spread, parts) -> list[float]:
    return [float(np.trace(parts[:n] @ spread @ parts[:n].T) / np.trace(spread)) for n in (2, 8, 16)]


def best(spread):
    return np.linalg.eigh(spread)[1][:, ::-1].T


def around_a_point(X):
    """Return the products of rows around 0.3 of 16, scaled and clipped to length 1."""
    rows = (X / 16 - 0.3) / 3
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    return rows.T @ rows


def bayes(epsilon: float, k: int) -> float:
    A, T, a, t = train_test_split(*load_digits(return_X_y=True), test_size=0.2, random_state=k)
    model = tc.learn.NaiveBayes(classes=range(10), bounds=(0, 16), epsilon=epsilon, delta=1e-6)
    return float(model.fit(declared(A, a, size=1_400)).score(T, t))


def boosting(data, epsilon: float, passes: int = 10):
    A, a, T, t = data
    model = tc.learn.ExplainableBoostingClassifier(
        classes=[0, 1],
        cuts=CUTS,
        categories=CATEGORIES,
        names=NAMES,
        epsilon=epsilon,
        delta=1e-6,
        passes=passes,
    )
    if epsilon > 100:
        held = tc.learn.examples(
            A, a, unit=tc.Unit.row(), size=30_000, budget=tc.Budget(epsilon=10**9, delta=1e-5)
        )
    else:
        held = declared(A, a, size=30_000)
    chance = model.fit(held).predict_proba(T)[:, 1]
    return [float(((chance > 0.5) == t).mean()), float(roc_auc_score(t, chance))]


def bench_shapes() -> None:
    theirs = ask_peer(peer_python(*DIFFPRIVLIB), PEER_SHAPES, REPEATS)
    line("score (CPU s)", "Tacit", "diffprivlib 0.6.6")
    for size in (2_000, 20_000):
        for epsilon in (1, 4):
            found, seconds = repeated(lambda k, s=size, e=epsilon: blobs(s, e, k))
            score, took = theirs[f"blobs {size} {epsilon}"]
            line(
                f"k-means, {size:,} blobs, epsilon {epsilon}",
                f"{found:.3f} ({seconds:.2f})",
                f"{score:.3f} ({took:.2f})",
            )
    for epsilon in (1, 4):
        found, seconds = repeated(lambda k, e=epsilon: digits(e, k))
        score, took = theirs[f"digits {epsilon}"]
        line(
            f"k-means, digits, epsilon {epsilon}", f"{found:.3f} ({seconds:.2f})", f"{score:.3f} ({took:.2f})"
        )
    X = load_digits().data
    exact = [kept(spread, best(spread)) for spread in (np.cov(X.T), around_a_point(X))]
    line(
        "components of digits, no noise",
        " / ".join(f"{one:.3f}" for own in exact for one in own),
        note="kept by 2 / 8 / 16: variance; squares around a point",
    )
    for epsilon in (1, 4):
        found, seconds = repeated(lambda k, e=epsilon: components(e, k))
        line(
            f"components of digits, epsilon {epsilon}",
            " / ".join(f"{one:.3f}" for one in found),
            "not finished",
        )
    for epsilon in (1, 4):
        found, seconds = repeated(lambda k, e=epsilon: bayes(e, k))
        score, took = theirs[f"bayes {epsilon}"]
        line(
            f"naive Bayes of digits, epsilon {epsilon}",
            f"{found:.3f} ({seconds:.2f})",
            f"{score:.3f} ({took:.2f})",
        )


def bench_boosting(folder) -> None:
    import tempfile
    from pathlib import Path

    from tacit.learn.estimators._fitted_numbers import FeatureBins

    A, a = read_adult(folder / "adult.data")
    T, t = read_adult(folder / "adult.test")
    bins = FeatureBins.declared(NAMES, None, 16, CUTS, CATEGORIES)
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "binned.npz"
        np.savez(path, A=bins.places(A), a=a, T=bins.places(T), t=t, sizes=bins.sizes)
        theirs = ask_peer(peer_python(*INTERPRET), PEER_BOOSTING, path)
    line("Adult: accuracy (AUC), CPU s", "Tacit", "interpret 0.7.8", "its default; rate .1 and 300 rounds")
    for epsilon in (0.5, 1, 4):
        found, seconds = repeated(lambda _, e=epsilon: boosting((A, a, T, t), e))
        best = [theirs[f"{words} {epsilon}"] for words in ("default", "rate .1, 300 rounds")]
        line(
            f"explainable boosting, epsilon {epsilon}",
            f"{found[0]:.4f} ({found[1]:.3f}), {seconds:.1f}",
            f"{best[0][0]:.4f} ({best[0][1]:.3f}), {best[0][2]:.1f}",
            f"{best[1][0]:.4f} ({best[1][1]:.3f}), {best[1][2]:.1f}",
        )
    exact = boosting((A, a, T, t), 10**6, passes=40)
    line("the same without noise", f"{exact[0]:.4f} ({exact[1]:.3f})")


def main() -> None:
    bench_shapes()
    folder = adult_folder()
    if folder is None:
        print("Adult is not there: see tests/support/adult.py")
    else:
        bench_boosting(folder)


if __name__ == "__main__":
    main()
