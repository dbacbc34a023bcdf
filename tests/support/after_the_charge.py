"""One release of each kind of question; at the moment of the first charge, everything optional breaks.

Run as ``python after_the_charge.py KIND,KIND HAZARD``. It prints "released", or the refusal.
"""

import importlib.abc
import io
import locale
import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path

import tacit as tc

OPTIONAL = {
    "IPython", "altair", "fastapi", "igraph", "jinja2", "matplotlib", "networkx", "pandas", "polars",
    "psycopg", "pyarrow", "pyspark", "rich", "sklearn", "transformers", "triton", "typer",
}  # fmt: skip


class Removed(importlib.abc.MetaPathFinder):
    """Packages that nobody installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in OPTIONAL:
            raise ImportError(f"{name} is imported after the charge")


class Broken(logging.Handler):
    """A log on a disk that is full."""

    def emit(self, record):
        raise OSError(28, "No space left on device")


def missing_streams():
    sys.stdin = sys.stdout = sys.stderr = None


def closed_streams():
    for name in ("stdin", "stdout", "stderr"):
        stream = io.StringIO()
        stream.close()
        setattr(sys, name, stream)


def closed_descriptors():
    for number in (0, 1, 2):
        os.close(number)


def full_device():
    sys.stdout = sys.stderr = Path("/dev/full").open("w")  # noqa: SIM115


def removed_packages():
    for name in [name for name in sys.modules if name.partition(".")[0] in OPTIONAL]:
        if name.partition(".")[0] not in LOADED:
            del sys.modules[name]
    sys.meta_path.insert(0, Removed())


def broken_logs():
    logging.raiseExceptions = True
    logging.getLogger().handlers = [Broken()]
    logging.getLogger().setLevel(logging.DEBUG)


def strict_warnings():
    warnings.simplefilter("error")


def odd_locale():
    for name in ("de_DE.UTF-8", "tr_TR.UTF-8", "C"):
        try:
            locale.setlocale(locale.LC_ALL, name)
            return
        except locale.Error:
            continue


def empty_environment():
    os.environ.clear()


def everything():
    missing_streams()
    closed_descriptors()
    removed_packages()
    broken_logs()
    strict_warnings()
    odd_locale()
    empty_environment()


HAZARDS = {
    hazard.__name__: hazard
    for hazard in (
        missing_streams, closed_streams, closed_descriptors, full_device, removed_packages, broken_logs,
        strict_warnings, odd_locale, empty_environment, everything,
    )
}  # fmt: skip


def _visits(ledger, name="visits"):
    rows = "".join(f"p{n},{'ab'[n % 2]},{n % 9},{n % 7}\n" for n in range(300))
    file = Path(tempfile.mkdtemp()) / "visits.csv"
    file.write_text("id,ward,days,age\n" + rows)
    return tc.protect(
        file, name=name, unit="id", bounds={"days": (0, 9), "age": (0, 9)}, keys={"ward": ["a", "b"]},
        limits={"rows": 1}, budget=tc.Budget(epsilon=9, delta=1e-6), ledger=ledger,
    )  # fmt: skip


def csv(ledger):
    return (
        _visits(ledger)
        .agg(n=tc.count(), mean=tc.mean("days"), middle=tc.median("age"))
        .plan(epsilon=1)
        .release
    )


def frame(ledger):
    import pandas as pd

    visits = pd.DataFrame({"id": [str(n) for n in range(99)], "days": [n % 9 for n in range(99)]})
    data = tc.protect(
        visits,
        name="visits",
        unit="id",
        bounds={"days": (0, 9)},
        limits={"rows": 1},
        budget=tc.Budget(epsilon=9),
        ledger=ledger,
    )
    return data.agg(n=tc.count(), total=tc.sum("days")).plan(epsilon=1).release


def crosstabs(ledger):
    return _visits(ledger).crosstabs(["ward"]).plan(epsilon=1).release


def regression(ledger):
    return _visits(ledger).regress("days", on=["age"]).plan(epsilon=1, delta=1e-7).release


def synthetic_rows(ledger):
    return _visits(ledger).synthesize(["ward"], method="tables").plan(epsilon=1, delta=1e-7).release


def graph(ledger):
    edges = [(f"n{a}", f"n{a + 1}") for a in range(40)]
    friends = tc.graph(
        edges, name="g", unit="node", degree_bound=3, budget=tc.Budget(epsilon=9), ledger=ledger
    )
    return friends.edges().plan(epsilon=1).release


def places(ledger):
    import pandas as pd

    points = pd.DataFrame({"id": [str(n) for n in range(50)], "lon": [n / 10 for n in range(50)], "lat": 1.0})
    sites = tc.points(
        points,
        "lat",
        "lon",
        name="m",
        unit="id",
        box=((0, 0), (5, 5)),
        limits={"rows": 1},
        budget=tc.Budget(epsilon=9),
        ledger=ledger,
    )
    return sites.grid(4, 4).plan(epsilon=1).release


def genotypes(ledger):
    from tacit.genomes import example_cohort

    return example_cohort(budget=tc.Budget(rho=9), ledger=ledger).frequencies().plan(rho=1).release


def days(ledger):
    flu = tc.stream(
        tempfile.mkdtemp(), name="s", unit="id", level="person-day", start="2026-01-01", days=9,
        limits={"rows": 1}, budget=tc.Budget(epsilon=9), ledger=ledger,
    )  # fmt: skip
    flu.append("2026-01-01", [{"id": "ana"}])
    flu.begin(flu.daily(cases=tc.count()).plan(epsilon=1))  # the charge of the whole run
    return lambda: flu.release("2026-01-01")


def estimator(_):
    import numpy as np

    x = np.arange(200.0).reshape(100, 2) % 7
    model = tc.learn.LinearRegression(
        epsilon=1, delta=1e-6, bounds=(0, 7), target_bounds=(0, 7), size=100, dataset="fit",
        budget=tc.Budget(epsilon=9, delta=1e-5),
    )  # fmt: skip
    return lambda: model.fit(x, x[:, 0])


def survival(ledger):
    asked = _visits(ledger).survival(time="days", event="age", bins=[0, 3, 6, 9])
    return asked.plan(epsilon=1).release


def batch(ledger):
    visits = _visits(ledger)
    asked = tc.batch(n=visits.agg(n=tc.count()), shares=visits.crosstabs(["ward"]))
    return asked.plan(epsilon=1, delta=1e-9).release


def consortium(ledger):
    members = [_visits(ledger, name) for name in ("north", "south")]
    return tc.consortium(members, disjoint=True).agg(n=tc.count()).plan(epsilon=1).release


def boosting(_):
    import numpy as np

    x = np.arange(200.0).reshape(100, 2) % 7
    model = tc.learn.ExplainableBoostingClassifier(
        epsilon=1, delta=1e-6, bounds=(0, 7), classes=[0, 1], size=100, dataset="boosted",
        budget=tc.Budget(epsilon=9, delta=1e-5),
    )  # fmt: skip
    return lambda: model.fit(x, (x[:, 0] > 3).astype(int))


def training(ledger):
    import numpy as np
    import torch

    x = np.arange(128, dtype=np.float32).reshape(64, 2) % 7
    data = tc.learn.examples(
        x, (x[:, 0] > 3).astype(int), unit=tc.Unit.row(), size=64, name="trained",
        budget=tc.Budget(epsilon=9, delta=1e-3), ledger=ledger,
    )  # fmt: skip
    model = torch.nn.Linear(2, 2)
    trainer = tc.learn.Trainer(
        model, torch.nn.functional.cross_entropy, torch.optim.SGD(model.parameters(), lr=0.1), data=data,
        sampling_rate=0.5, steps=2, noise=1, delta=1e-3, clip=1,
    )  # fmt: skip
    return trainer.plan().release


KINDS = {
    kind.__name__: kind
    for kind in (
        csv, frame, crosstabs, regression, survival, batch, consortium, synthetic_rows, graph, places,
        genotypes, days, estimator, boosting, training,
    )
}  # fmt: skip


def main(kinds: str, hazard: str) -> None:
    """Release once of each kind, with the hazard from the moment of the first charge on."""
    ledgers = {kind: tc.Ledger.memory() for kind in kinds.split(",")}
    releases = [KINDS[kind](ledger) for kind, ledger in ledgers.items()]
    LOADED.update(name.partition(".")[0] for name in sys.modules)
    authorise, seen = tc.Ledger._authorise, []

    def charged(self, request):
        decision = authorise(self, request)
        if not seen:
            seen.append(decision)
            HAZARDS[hazard]()
        return decision

    if kinds == "days":  # the whole run is charged already
        HAZARDS[hazard]()
        seen.append(None)
    tc.Ledger._authorise = charged
    for release in releases:
        release()
    if not seen:
        raise AssertionError("there was no charge")


LOADED: set[str] = set()

if __name__ == "__main__":
    answer = os.dup(1)  # the test reads it, whatever happens to standard output
    try:
        main(*sys.argv[1:])
    except BaseException as error:
        os.write(answer, repr(error).encode())
    else:
        os.write(answer, b"released")
    os._exit(0)
