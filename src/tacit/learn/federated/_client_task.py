"""The tasks of a run with clients: all rounds in one draw, or in instalments with a checkpoint after each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.learn.federated._client import unflatten
from tacit.learn.federated._client_model import ClientModel
from tacit.learn.federated._client_rounds import ClientSums, read_state
from tacit.mechanisms import SampledSteps

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from fractions import Fraction

    from tacit.core import JSON
    from tacit.learn.federated._client_rounds import ClientRounds
    from tacit.learn.federated._clients import Clients

__all__ = ["ClientCheckpointTask", "ClientTask"]


@dataclass(frozen=True, slots=True)
class ClientTask:
    """All rounds in one draw."""

    clients: Clients
    rounds: ClientRounds

    @property
    def question(self) -> JSON:
        """What is trained, from which start, and how."""
        return {"learn": "clients", **self.rounds.document()}

    @property
    def mechanisms(self) -> tuple[SampledSteps, ...]:
        """The rounds."""
        return (self.rounds.mechanism,)

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the sums over clients, which the mechanism asks round by round."""
        yield ClientSums(self.rounds, self.clients.names, self.clients._exchange)  # noqa: SLF001 - tasks may

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> ClientModel:
        """Read the trained weights."""
        del confidence
        return _model(self.rounds, noisy[0])


@dataclass(frozen=True, slots=True)
class ClientCheckpointTask:
    """The rounds in instalments: each continues where the last stored one stopped."""

    clients: Clients
    rounds: ClientRounds
    instalments: int

    @property
    def question(self) -> JSON:
        """What is trained, from which start, how, and with how many checkpoints."""
        return {"learn": "clients", "checkpoints": self.instalments, **self.rounds.document()}

    def mechanisms_of(self, number: int) -> tuple[SampledSteps, ...]:
        """Return the rounds of one instalment."""
        whole = self.rounds.mechanism
        shares = [whole.steps * place // self.instalments for place in (number - 1, number)]
        own = SampledSteps(
            sigma=whole.sigma, sensitivity=whole.sensitivity, rate=whole.rate, steps=shares[1] - shares[0]
        )
        return (own,)

    def integers_of(
        self, number: int, noisy: Mapping[int, Sequence[Any]], state: bytes
    ) -> Generator[Any, Any, bytes | None]:
        """Yield the sums, which start from the last stored checkpoint."""
        del state
        stored = [one for one in range(1, number) if one in noisy]
        begun = read_state(noisy[stored[-1]][0]) if stored else None
        yield ClientSums(self.rounds, self.clients.names, self.clients._exchange, begun)  # noqa: SLF001 - tasks may
        return None

    def read_of(self, number: int, noisy: Mapping[int, Sequence[Any]], confidence: Fraction) -> ClientModel:
        """Read the weights of a checkpoint."""
        del confidence
        return _model(self.rounds, noisy[number][0])


def _model(rounds: ClientRounds, stored: Any) -> ClientModel:
    state = read_state(stored)
    return ClientModel(unflatten(state.weights, rounds.shapes), state.clips, rounds.mechanism.steps)
