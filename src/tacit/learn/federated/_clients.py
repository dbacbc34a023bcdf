"""Clients of a federated run with a trusted server: each client is the unit, with all that it holds.

A run is planned in one draw, or in instalments with a checkpoint after each. Its content is the weights, and
the clip of each round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import (
    DELTA,
    Argument,
    Content,
    Dataset,
    DatasetKind,
    Draft,
    Forecast,
    RunTask,
    Step,
    Task,
    Unit,
    fixes_of,
    open_account,
    plain_table,
    plannable,
    read_identity,
)
from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Say
from tacit.learn._arrays import from_document, to_document
from tacit.learn._questions import inner_question
from tacit.learn.estimators._fits import check_fit_goal
from tacit.learn.federated._client_rounds import ClientRounds, ClientSums, flatten, read_state, unflatten
from tacit.learn.federated._gradients import CLIP_STEPS, MAX_WEIGHTS
from tacit.learn.training._settings import AdaptiveClip
from tacit.ledger import open_books
from tacit.mechanisms import SampledSteps
from tacit.parameters import Anything, Integer, Listed, RealNumber, Share
from tacit.report import percent
from tacit.show import Chart, ChartAxis, ChartSeries, Figure

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.accounting import Budget
    from tacit.core import JSON, AnswerTable, DrawnBefore, Goal, Noisy, Question
    from tacit.learn.federated._coordinator import Exchange
    from tacit.ledger import Ledger


class ClientModel(Content):
    """The weights that clients trained with a trusted server, and the clip of each round.

    Parameters
    ----------
    weights
        The trained weights, in the shapes of the start.
    clips
        How long an update could be in each round; adaptive clips follow from noisy counts alone.
    rounds
        How many rounds were planned.
    """

    kind: ClassVar[str] = "client-model"
    __slots__ = ("clips", "rounds", "weights")

    def __init__(self, weights: Sequence[NDArray[np.float64]], clips: Sequence[float], rounds: int) -> None:
        self.weights = list(weights)
        self.clips = tuple(clips)
        self.rounds = rounds

    def to_json(self) -> JSON:
        """Return the model as JSON."""
        return {
            "weights": [to_document(one) for one in self.weights],
            "clips": list(self.clips),
            "rounds": self.rounds,
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the model back; raises ``ValueError`` where it is none."""
        weights = [from_document(one) for one in document["weights"]]
        clips = [float(one) for one in document["clips"]]
        if not all(math.isfinite(one) and one > 0 for one in clips):
            raise ValueError("not a model")
        return cls(weights, clips, int(document["rounds"]))

    def __repr__(self) -> str:
        numbers = sum(one.size for one in self.weights)
        return f"model of clients: {numbers:,} weights, after {len(self.clips):,} of {self.rounds:,} rounds"

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the rounds, and how long an update could be in each."""
        yield "rounds", plain_table({"round": list(range(1, len(self.clips) + 1))}, {"clip": self.clips})

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the clip over the rounds."""
        del what
        line = ChartSeries("line", range(1, len(self.clips) + 1), self.clips)
        title = "length of one client's update, at most"
        return (Figure(title, (Chart((line,), ChartAxis("round"), ChartAxis("clip")),)),)


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
        mechanism = rounds.mechanism
        shares = [mechanism.steps * place // instalments for place in (number - 1, number)]
        part = SampledSteps(
            sigma=mechanism.sigma,
            sensitivity=mechanism.sensitivity,
            rate=mechanism.rate,
            steps=shares[1] - shares[0],
        )
        return (Step(part, lambda sums, _: sums),)

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


@dataclass(frozen=True, eq=False, repr=False)
class Clients(Dataset):
    """Clients that a trusted server trains a model with; made by `clients`.

    Parameters
    ----------
    size
        The declared, public number of clients, about. Rate and denominator use it; nobody counts.
    names
        The clients that can be reached.
    """

    kind: ClassVar[str] = "clients"

    size: int
    names: tuple[str, ...] = field(repr=False)
    _exchange: Exchange = field(repr=False)

    @plannable
    def train(
        self,
        start: Sequence[Any],
        *,
        rounds: int,
        rate: Number,
        clip: Number | AdaptiveClip = 1,
        learning_rate: Number = 1,
        momentum: Number = 0,
        checkpoints: int = 1,
    ) -> Question[ClientModel]:
        """Ask for a run: its noise follows from the promise, and the cost is known before the first round.

        Guarantee: the released weights and clips of all rounds together are (epsilon, delta)-private for one
        client with all that it holds, add/remove; delta is at most 1 / size. Each round samples every client
        independently with the stated rate, and the sample stays secret with the server. An update is clipped
        by the client and again by the server, on a grid of whole numbers; one that is missing or not finite
        counts as zero. The sum gets rounded Gaussian noise and is divided by the rate times the declared
        size. The server is trusted with the updates themselves.

        Parameters
        ----------
        start
            The weights before the first round: a list of arrays.
        rounds
            How many rounds there are.
        rate
            The probability that a client is in a round, in (0, 1].
        clip
            How long an update can be in L2; or `tacit.learn.AdaptiveClip`, which follows a quantile of the
            lengths at no further cost: its noisy count shares the noise of the sum.
        learning_rate, momentum
            How the server moves the weights by the noisy mean of the updates.
        checkpoints
            In how many instalments the rounds are taken; each is stored before the next one begins.

        Examples
        --------
        >>> import numpy as np, tacit as tc
        >>> from tacit.learn.federated import Client, clients, in_process
        >>> phones = {f"phone {i}": Client(f"phone {i}", lambda w: [0.1 * (1 - w[0])]) for i in range(200)}
        >>> budget = tc.Budget(epsilon=12, delta=1e-3)
        >>> group = clients(list(phones), in_process(phones), size=200, budget=budget)
        >>> question = group.train([np.zeros(2)], rounds=5, rate=0.5, clip=0.2)
        >>> model = question.plan(epsilon=8, delta=1e-3).release()
        >>> len(model.clips), model.weights[0].shape
        (5, (2,))
        """
        n_rounds = count("rounds", rounds, zero=False)
        why = f"the number of rounds is {n_rounds:,}"
        parts = Integer(1, n_rounds, why, instead=n_rounds).read("checkpoints", checkpoints)
        arrays, shapes = _start(start)
        return CLIENT_TRAINING.ask(
            self, start=arrays, shapes=shapes, rounds=n_rounds, rate=_rate(rate),
            clip=clip if isinstance(clip, AdaptiveClip) else rational("clip", clip),
            learning_rate=learning_rate, momentum=_momentum(momentum), checkpoints=parts,
        )  # fmt: skip

    #: The former name, which planned at once.
    plan = train


def clients(
    names: Sequence[str],
    exchange: Exchange,
    *,
    size: int,
    budget: Budget,
    name: str = "clients",
    version: int = 1,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    parent: str | None = None,
) -> Clients:
    """Declare the clients of a federated run whose server is trusted.

    Guarantee: all releases together are private for one client within the budget: a client with all that it
    holds takes part or not (add/remove). To protect each *patient* of a hospital, without trust in a server,
    use `study` instead.

    Parameters
    ----------
    names
        The clients that can be reached, each under its own name.
    exchange
        How messages travel: `in_process`, Flower, or any function from messages by name to replies by name.
        A client that does not reply is left out of the replies.
    size
        About how many clients there are, from public knowledge.
    budget
        What may be learned in total.
    name, version
        Declared identity, to which the budget is bound.
    ledger
        A `Ledger`, or where to open one; None keeps it in memory.
    parent
        A curator's account that pays as well.

    Examples
    --------
    >>> import tacit as tc
    >>> clients(["north", "south"], lambda sent: {}, size=2, budget=tc.Budget(epsilon=1, delta=0.1))
    Clients('clients', unit=Unit.client())
    kept in memory: forgotten when Python ends
    """
    with fixes_of("tc.learn.federated.clients"):
        identity = read_identity(name=name, version=version, unit=Unit.client())
    parameter = Listed(
        "names", '["north", "south"]', least=0, different=True,
        why="two clients with one name would count as one",
    )  # fmt: skip
    client_names = tuple(parameter.read("names", [str(one) for one in names]))
    books = open_books(ledger, identity.name, exchange)
    dataset = Clients(identity, books, count("size", size, zero=False), client_names, exchange)
    with fixes_of("tc.learn.federated.clients"):
        open_account(identity, budget, books, parent=parent)
    return dataset


def _rate(rate: Number) -> Fraction:
    return Share(instead=0.1, why="it is a probability").read("rate", rate)


def _momentum(momentum: Number) -> Fraction:
    return RealNumber(least=0, below=1, instead=0.9).read("momentum", momentum)


def _start(start: Sequence[Any]) -> tuple[Any, tuple[tuple[int, ...], ...]]:
    """Return the start as one line, and its shapes."""
    arrays = [np.asarray(one, dtype=np.float64) for one in start]
    line = flatten(arrays)
    if not 0 < line.size <= MAX_WEIGHTS or not np.isfinite(line).all():
        raise bad_parameter(
            "start", f"a list of arrays with 1 to {MAX_WEIGHTS:,} finite numbers", f"{line.size:,} numbers",
            fix=Say("pass the weights before the first round"),
        )  # fmt: skip
    return line, tuple(one.shape for one in arrays)
