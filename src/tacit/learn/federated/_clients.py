"""Clients of a federated run with a trusted server: each client is the unit, with all that it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.core import Dataset, Unit, fixes_of, open_account, plannable, read_identity
from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Say
from tacit.learn._adaptive_clip import AdaptiveClip
from tacit.learn.federated._client import flatten
from tacit.learn.federated._client_draft import CLIENT_TRAINING
from tacit.learn.federated._whole_gradients import MOST_WEIGHTS
from tacit.ledger import open_books
from tacit.parameters import Integer, Listed, RealNumber, Share

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from fractions import Fraction

    from tacit.accounting import Budget
    from tacit.core import Question
    from tacit.learn.federated._client_model import ClientModel
    from tacit.learn.federated._coordinator import Exchange
    from tacit.ledger import Ledger


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
        taken = count("rounds", rounds, zero=False)
        parts = Integer(1, taken, instead=taken).read("checkpoints", checkpoints)
        arrays, shapes = _start(start)
        return CLIENT_TRAINING.ask(
            self, start=arrays, shapes=shapes, rounds=taken, rate=_rate(rate),
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
    own = Listed(
        "names", '["north", "south"]', least=0, different=True,
        why="two clients with one name would count as one",
    )  # fmt: skip
    listed = tuple(own.read("names", [str(one) for one in names]))
    books = open_books(ledger, identity.name, exchange)
    made = Clients(identity, books, count("size", size, zero=False), listed, exchange)
    with fixes_of("tc.learn.federated.clients"):
        open_account(identity, budget, books, parent=parent)
    return made


def _rate(rate: Number) -> Fraction:
    return Share(instead=0.1, why="it is a probability").read("rate", rate)


def _momentum(momentum: Number) -> Fraction:
    return RealNumber(least=0, below=1, instead=0.9).read("momentum", momentum)


def _start(start: Sequence[Any]) -> tuple[Any, tuple[tuple[int, ...], ...]]:
    """Return the start as one line, and its shapes."""
    arrays = [np.asarray(one, dtype=np.float64) for one in start]
    line = flatten(arrays)
    if not 0 < line.size <= MOST_WEIGHTS or not np.isfinite(line).all():
        raise bad_parameter(
            "start", f"a list of arrays with 1 to {MOST_WEIGHTS:,} finite numbers", f"{line.size:,} numbers",
            fix=Say("pass the weights before the first round"),
        )  # fmt: skip
    return line, tuple(one.shape for one in arrays)
