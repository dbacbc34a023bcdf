"""Commands that attack: ``tacit audit`` a mechanism on its worst neighbours, ``tacit lab`` synthetic people.

The lab attacks exact answers, k-anonymous tables and Tacit.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli._app import app
from tacit.cli._output import JsonOption, PlotOption, say, show_json, write_figures
from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.report import Report, ReportTable, percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.audit import lab as room
    from tacit.mechanisms import Mechanism

    Result = (
        room.AveragingAttack
        | room.BeaconAttack
        | room.DifferencingAttack
        | room.FriendshipAttack
        | room.GenomeMembership
        | room.HeatMapAttack
        | room.HomogeneityAttack
        | room.LinkingAttack
        | room.MembershipAttack
        | room.ReconstructionAttack
        | room.SinglingOut
        | room.UpdateInversion
        | room.UpdateMembership
    )


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

    mechanisms = _mechanisms()
    if mechanism not in mechanisms:
        fix = Choose(tuple(mechanisms), given=mechanism)
        raise TacitError("bad-parameter", f"there is no mechanism {mechanism!r} to audit", fix=fix)
    target = mechanisms[mechanism](epsilon, delta)
    at = delta if "gaussian" in mechanism else 0.0
    outcome = attack(target, samples=samples, delta=at, confidence=confidence)
    if as_json:
        proven = {"epsilon_lower": outcome.epsilon_lower, "delta": at, "confidence": confidence}
        show_json({"mechanism": mechanism, "claimed": epsilon, **proven, "holds": outcome.holds})
    else:
        typer.echo(repr(target))
        typer.echo(repr(outcome))
    if outcome.holds is False:
        raise typer.Exit(1)


class Attack(StrEnum):
    """The attacks of the lab."""

    homogeneity = "homogeneity"
    linking = "linking"
    differencing = "differencing"
    reconstruction = "reconstruction"
    averaging = "averaging"
    membership = "membership"
    friendship = "friendship"
    heat_map = "heat-map"
    genome_membership = "genome-membership"
    beacon = "beacon"
    singling_out = "singling-out"
    update_inversion = "update-inversion"
    update_membership = "update-membership"


_TABLES = {Attack.homogeneity, Attack.linking}


@app.command()
def lab(
    attack: Annotated[
        Attack | None, typer.Argument(help="One attack, shown in full; without it, all attacks in short.")
    ] = None,
    epsilon: Annotated[
        list[float] | None,
        typer.Option("--epsilon", "-e", help="Attack Tacit at this cost; may be repeated."),
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", help="How many people look alike in the k-anonymous tables.")
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            help="How often to repeat each attack, on each of two datasets that differ in one person.",
        ),
    ] = None,
    plot: PlotOption = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Attack exact answers and k-anonymous tables, then Tacit, and show what an attacker learns."""
    if attack is None:
        if plot is not None:
            raise TacitError(
                "bad-parameter", "--plot needs one attack by name", fix="tacit lab membership --plot lab.png"
            )
        results = {one: _run(one, epsilon or [1.0], k, trials) for one in Attack}
        if as_json:
            show_json({one.value: result.to_dict() for one, result in results.items()})
        else:
            say(_summary(results), "\nOne of them in full: tacit lab reconstruction")
        return
    if k is not None and attack not in _TABLES:
        raise TacitError(
            "bad-parameter",
            f"--k is an option of homogeneity and linking, not of {attack.value}",
            fix=f"tacit lab homogeneity --k {k}",
        )
    result = _run(attack, epsilon, k, trials)
    if plot is not None:
        write_figures(plot, result)
    if as_json:
        show_json(result)
    else:
        say(result)


def _run(attack: Attack, epsilons: list[float] | None, k: int | None, trials: int | None) -> Result:
    from tacit.audit import lab as room

    options: dict[str, object] = {} if trials is None else {"trials": trials}
    if k is not None and attack in _TABLES:
        options["k"] = k
    if attack is Attack.averaging:
        if epsilons:
            options["epsilon"] = epsilons[0]
    elif epsilons:
        options["epsilons"] = epsilons
    run = getattr(room, attack.name, None) or getattr(room, f"{attack.name}_attack")
    outcome: Result = run(**options)
    return outcome


def _summary(results: dict[Attack, Result]) -> Report:
    """Give each attack one line: without Tacit, and against it."""
    rows = []
    for attack, result in results.items():
        point = result.points[-1]
        rows.append(
            (
                attack.value,
                result.unprotected,
                f"{point.epsilon:g}",
                f"{point.low:.2f} to {point.high:.2f}",
                f"{point.bound:.3f}",
                "yes" if point.within_bound else "NO",
            )
        )
    confidence = max(result.points[-1].confidence for result in results.values())
    header = ("attack", "without Tacit", "epsilon", "advantage against Tacit", "bound", "within")
    lead = ("Thirteen attacks on people who do not exist. Advantage 0 is blind guessing, 1 is certainty.",)
    note = (
        f"Measured advantages vary by chance, so each is shown as a {percent(confidence)} interval; "
        "it counts as within the bound unless the whole interval lies above the bound."
    )
    return Report("The attack lab", lead, (ReportTable("", header, tuple(rows)),), (note,))
