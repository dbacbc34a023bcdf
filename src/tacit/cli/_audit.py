"""The ``tacit audit`` command: attack a mechanism on its worst neighbours, and report what was proven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli._app import app
from tacit.cli._output import JsonOption, show_json
from tacit.errors import TacitError
from tacit.fixes import Choose

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.mechanisms import Mechanism


def _mechanisms() -> dict[str, Callable[[float, float], Mechanism]]:
    """Return the mechanisms by name, each built from epsilon and delta."""
    from tacit import mechanisms as m

    return {
        "laplace": lambda epsilon, _: m.Laplace(epsilon=epsilon, sensitivity=1),
        "gaussian": lambda epsilon, delta: m.Gaussian(epsilon=epsilon, delta=delta, sensitivity=1),
        "discrete-laplace": lambda epsilon, _: m.DiscreteLaplace(epsilon=epsilon, sensitivity=1),
        "discrete-gaussian": lambda epsilon, delta: m.DiscreteGaussian(
            epsilon=epsilon, delta=delta, sensitivity=1
        ),
        "exponential": lambda epsilon, _: m.Exponential(epsilon, sensitivity=1),
        "noisy-max": lambda epsilon, _: m.NoisyMax(epsilon, sensitivity=1),
        "permute-and-flip": lambda epsilon, _: m.PermuteAndFlip(epsilon, sensitivity=1),
        "randomized-response": lambda epsilon, _: m.RandomizedResponse(epsilon=epsilon),
        "sparse-vector": lambda epsilon, _: m.SparseVector(epsilon, threshold=0, sensitivity=1),
        "count": lambda epsilon, _: m.Count(epsilon=epsilon),
        "sum": lambda epsilon, _: m.Sum(epsilon=epsilon, bounds=(0, 10)),
        "mean": lambda epsilon, _: m.Mean(epsilon=epsilon, bounds=(0, 10)),
        "histogram": lambda epsilon, _: m.Histogram(epsilon=epsilon, categories=("A", "B", "C")),
        "quantile": lambda epsilon, _: m.Quantile(epsilon, q=0.5, candidates=range(11)),
    }


@app.command()
def audit(
    mechanism: Annotated[str, typer.Argument(help="The name of the mechanism, such as laplace.")],
    epsilon: Annotated[float, typer.Option(help="The promise to attack.")],
    *,
    delta: Annotated[
        float, typer.Option(help="For the Gaussian mechanisms: the delta of the promise.")
    ] = 1e-5,
    samples: Annotated[
        int, typer.Option(help="How many outputs to draw for each of the two inputs.")
    ] = 1_000_000,
    confidence: Annotated[float, typer.Option(help="The confidence of the reported lower bound.")] = 0.999,
    as_json: JsonOption = False,
) -> None:
    """Attack a mechanism on the two inputs where it reveals most; exit status 1 means a broken promise."""
    from tacit.audit import audit as attack

    known = _mechanisms()
    if mechanism not in known:
        fix = Choose(tuple(known), given=mechanism)
        raise TacitError("bad-parameter", f"there is no mechanism {mechanism!r} to audit", fix=fix)
    target = known[mechanism](epsilon, delta)
    at = delta if "gaussian" in mechanism else 0.0
    found = attack(target, samples=samples, delta=at, confidence=confidence)
    if as_json:
        proven = {"epsilon_lower": found.epsilon_lower, "delta": at, "confidence": confidence}
        show_json({"mechanism": mechanism, "claimed": epsilon, **proven, "holds": found.holds})
    else:
        typer.echo(repr(target))
        typer.echo(repr(found))
    if found.holds is False:
        raise typer.Exit(1)
