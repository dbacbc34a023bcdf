"""How a run with clients is planned: in one draw, or in instalments with a checkpoint after each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.core import DELTA, Argument, DatasetKind, Draft, Forecast, RunTask, Step, Task
from tacit.learn._adaptive_clip import AdaptiveClip
from tacit.learn._fit_noise import check_fit_goal
from tacit.learn._questions import inner_question
from tacit.learn.federated._client import unflatten
from tacit.learn.federated._client_model import ClientModel
from tacit.learn.federated._client_rounds import ClientRounds, ClientSums, read_state
from tacit.learn.federated._whole_gradients import CLIP_STEPS
from tacit.mechanisms import SampledSteps
from tacit.parameters import Anything, Integer, RealNumber
from tacit.report import percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from tacit.core import DrawnBefore, Goal, Noisy
    from tacit.learn.federated._clients import Clients


def draft_client_training(
    clients: Clients,
    goal: Goal,
    *,
    start: NDArray[np.float64],
    shapes: tuple[tuple[int, ...], ...],
    rounds: int,
    rate: Fraction,
    clip: Fraction | AdaptiveClip,
    learning_rate: Fraction,
    momentum: Fraction,
    checkpoints: int,
) -> Draft[ClientModel]:
    """Draft a run, with the noise that keeps the promise."""
    check_fit_goal(goal, clients.size)
    assert goal.epsilon is not None  # noqa: S101 - a run takes nothing else
    mechanism = SampledSteps.calibrated(
        epsilon=goal.epsilon, delta=goal.delta, sensitivity=CLIP_STEPS, rate=rate, steps=rounds
    )
    agreed = ClientRounds(start, shapes, mechanism, clip, clients.size, learning_rate, momentum)
    return Draft(
        task=_in_one_draw(clients, agreed)
        if checkpoints == 1
        else _in_instalments(clients, agreed, checkpoints),
        asked=f"train with clients: {clients.identity.name}",
        forecast=lambda: [_forecast(agreed)],
        facts=lambda: _facts(agreed),
        goal=goal,
    )


def _in_one_draw(clients: Clients, rounds: ClientRounds) -> Task[ClientSums, ClientModel]:
    """Return all rounds as one draw."""
    return Task(
        document={"learn": "clients", **rounds.document()},
        open=lambda _: ClientSums(rounds, clients.names, clients._exchange),  # noqa: SLF001 - of this room
        steps=(Step(rounds.mechanism, lambda sums, _: sums),),
        reading=lambda noisy, _: _model(rounds, noisy[0]),
    )


def _in_instalments(
    clients: Clients, rounds: ClientRounds, instalments: int
) -> RunTask[ClientSums, ClientModel]:
    """Return the rounds in instalments: each continues where the last stored one stopped."""

    def steps_of(number: int) -> tuple[Step[ClientSums], ...]:
        whole = rounds.mechanism
        shares = [whole.steps * place // instalments for place in (number - 1, number)]
        own = SampledSteps(
            sigma=whole.sigma, sensitivity=whole.sensitivity, rate=whole.rate, steps=shares[1] - shares[0]
        )
        return (Step(own, lambda sums, _: sums),)

    def sums(before: DrawnBefore) -> ClientSums:
        stored = [one for one in range(1, before.number) if one in before.noisy]
        begun = read_state(before.noisy[stored[-1]][0]) if stored else None
        return ClientSums(rounds, clients.names, clients._exchange, begun)  # noqa: SLF001 - of this room

    def reading(number: int, noisy: Mapping[int, Sequence[Noisy]], _: Fraction) -> ClientModel:
        return _model(rounds, noisy[number][0])

    return RunTask(
        document={"learn": "clients", "checkpoints": instalments, **rounds.document()},
        instalments=instalments,
        steps_of=steps_of,
        open=sums,
        reading=reading,
    )


def _model(rounds: ClientRounds, stored: Any) -> ClientModel:
    state = read_state(stored)
    return ClientModel(unflatten(state.weights, rounds.shapes), state.clips, rounds.mechanism.steps)


def _forecast(rounds: ClientRounds) -> Forecast:
    """Say how far the noise moves the mean update of one round."""
    sigma = float(rounds.mechanism.sigma) / rounds.update_steps
    half = 1.959964 * sigma * rounds.first_clip / rounds.expected
    return Forecast(
        "weights", "mean update of the first round, each number", rounds.mechanism.describe(), half
    )


def _facts(rounds: ClientRounds) -> list[tuple[str, str]]:
    """Say what is agreed, for the plan."""
    steps = rounds.mechanism
    multiple = float(steps.sigma / steps.sensitivity)
    if isinstance(rounds.clip, AdaptiveClip):
        quantile = percent(float(rounds.clip.quantile), 0)
        more = percent(CLIP_STEPS / rounds.update_steps - 1)
        clip = (
            f"{rounds.first_clip:.4g} at first, then towards the {quantile} quantile of lengths; the noise "
            f"of the updates grows by {more} for it"
        )
    else:
        clip = f"an update is at most {rounds.first_clip:.4g} long"
    return [
        ("rounds", f"{steps.steps:,}; each samples {float(steps.rate):.4g} of the clients"),
        ("denominator", f"{rounds.expected:.6g}: the rate times the declared {rounds.size:,} clients"),
        ("clip", clip),
        ("noise", f"{multiple:.4g} clips in each sum, {multiple / rounds.expected:.4g} in each mean"),
        ("trust", "the server sees every update; the promise holds against everyone who sees only the model"),
    ]


CLIENT_TRAINING = inner_question(
    name="train", words="Train a model with clients", draft=draft_client_training, takes=frozenset({DELTA}),
    example="epsilon=2, delta=1e-6",
    arguments=(
        Argument("start", Anything("the weights before the first round"), needed=True),
        Argument("shapes", Anything("the shapes of their arrays"), needed=True),
        Argument("rounds", Integer(1), needed=True),
        Argument("rate", RealNumber(), needed=True, words="the probability that a client is in a round"),
        Argument("clip", Anything("how long an update can be"), needed=True),
        Argument("learning_rate", RealNumber(), needed=True),
        Argument("momentum", RealNumber(zero=True), needed=True),
        Argument("checkpoints", Integer(1), needed=True, words="in how many instalments"),
    ),
)  # fmt: skip
CLIENTS = DatasetKind(name="clients", label="clients of a trusted server", questions=(CLIENT_TRAINING,))
