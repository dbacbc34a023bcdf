"""The coordinator of a study: it sends weights, adds up what comes back, and moves the model.

Nobody has to trust it: each hospital protects its patients by itself. The model that hospitals trained
together has the weights, and who took part in each round.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np

from tacit.accounting import Cost
from tacit.core import Certificate, Content, Release, plain_table
from tacit.errors import TacitError
from tacit.fixes import Either, Say
from tacit.learn._arrays import from_document, to_document
from tacit.learn.federated._messages import Message, pack, unpack, weights_digest
from tacit.parameters import RealNumber
from tacit.progress import progress
from tacit.show import Chart, ChartAxis, ChartSeries, Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tacit.core import JSON, AnswerTable
    from tacit.learn.federated._gradients import GradientModel
    from tacit.learn.federated._hospital import Hospital
    from tacit.learn.federated._study import Study


class FederatedModel(Content):
    """What a study released: the weights of its model, and how it came about.

    Parameters
    ----------
    model
        How the weights predict; None where it was read from a file and is not one of Tacit's own.
    study
        The document of the study.
    weights
        The trained weights.
    members
        Which hospitals were in the sum of each round; nobody where a round was lost.
    """

    kind: ClassVar[str] = "federated-model"
    __slots__ = ("members", "model", "study", "weights")

    def __init__(
        self,
        model: GradientModel | None,
        study: Mapping[str, JSON],
        weights: NDArray[np.float64],
        members: tuple[tuple[str, ...], ...],
    ) -> None:
        self.model = model
        self.study = study
        self.weights = weights
        self.members = members

    @property
    def rounds(self) -> int:
        """How many rounds moved the model."""
        return sum(1 for names in self.members if names)

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return what the model predicts for each example."""
        if self.model is None:
            raise TypeError("the weights were read without their model: give both to the model's own predict")
        return self.model.predict(self.weights, X)

    def to_json(self) -> JSON:
        """Return the model as JSON."""
        return {
            "study": dict(self.study),
            "weights": to_document(self.weights),
            "members": [list(names) for names in self.members],
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the model back."""
        from tacit.learn.federated._study import read_model

        try:
            model: GradientModel | None = read_model(document["study"]["model"])
        except ValueError:
            model = None
        weights = from_document(document["weights"])
        if weights.ndim != 1 or weights.dtype != np.float64:
            raise ValueError("not a model")
        members = tuple(tuple(str(name) for name in names) for names in document["members"])
        return cls(model, document["study"], weights, members)

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write for a terminal what was trained, with whom, and how many rounds were lost."""
        lost = len(self.members) - self.rounds
        were = "was" if lost == 1 else "were"
        missed = [f"{lost} of {len(self.members)} rounds {were} lost: too few hospitals took part"]
        agreed: Any = self.study.get("hospitals", {})
        absent = sorted(set(agreed) - {name for names in self.members for name in names})
        gone = [f"{len(absent)} of {len(agreed)} hospitals took part in no round: {', '.join(absent)}"]
        return "\n".join([repr(self), *(missed if lost else []), *(gone if absent else []), *marks])

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the rounds, and who was in the sum of each."""
        taking: dict[str, list[Any]] = {
            "hospitals": [len(names) for names in self.members],
            "names": [", ".join(names) for names in self.members],
        }
        yield "rounds", plain_table({"round": list(range(1, len(self.members) + 1))}, taking)

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return how many hospitals were in the sum of each round."""
        del what
        rounds, taking = range(1, len(self.members) + 1), [len(names) for names in self.members]
        chart = Chart((ChartSeries("bars", rounds, taking),), ChartAxis("round"), ChartAxis("hospitals"))
        return (Figure("hospitals in each round", (chart,)),)

    def __repr__(self) -> str:
        members = {name for names in self.members for name in names}
        return (
            f"FederatedModel of {self.study['name']}: {len(self.weights):,} weights, {self.rounds} rounds, "
            f"{len(members)} hospitals"
        )


#: Sends one message to each named hospital and returns the replies that came back, by name.
Exchange: TypeAlias = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]


def in_process(hospitals: Mapping[str, Hospital]) -> Exchange:
    """Return an exchange with hospitals that live in this process, for trials and tests.

    Examples
    --------
    >>> in_process({})({})
    {}
    """
    return lambda sent: {name: hospitals[name].handle(one) for name, one in sent.items() if name in hospitals}


class Coordinator:
    """Train a model with hospitals that do not trust it.

    Everything that it does is post-processing of private sums. Hospitals that do not reply are left out of
    the round; a round with too few of them moves nothing.

    Parameters
    ----------
    study
        The study that the hospitals agreed to.
    exchange
        How messages travel: `in_process`, Flower, or any function of this form.
    learning_rate, momentum
        The step of plain gradient descent.
    average
        Whether the model is the mean of the weights of the second half of the rounds.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> from tacit.learn.federated import Hospital, Participant, Softmax, in_process, study
    >>> agreed = study("flu", Softmax(4, 2), {"north": Participant(200)}, rounds=3, epsilon=1, delta=1e-5,
    ...                noise="own")
    >>> patients = tc.learn.examples(np.zeros((200, 4)), np.zeros(200), unit=tc.Unit.row(), size=200,
    ...                              name="north", budget=tc.Budget(epsilon=2, delta=1e-4))
    >>> hospitals = {"north": Hospital("north", agreed, patients)}
    >>> release = Coordinator(agreed, in_process(hospitals)).train()
    >>> release.rounds, release.certificate.names
    (3, 'north')
    """

    def __init__(
        self,
        study: Study,
        exchange: Exchange,
        *,
        learning_rate: float = 1.0,
        momentum: float = 0.5,
        average: bool = True,
    ) -> None:
        RealNumber(instead=1.0).read("learning_rate", learning_rate)
        RealNumber(least=0, below=1).read("momentum", momentum)
        self.study = study
        self._digest = study.digest
        self.weights = np.asarray(study.model.start(), dtype=np.float64)
        self.number = 0
        self.members: list[tuple[str, ...]] = []  # who was in the sum of each round; nobody where it was lost
        self.refusals: dict[str, str] = {}  # the last refusal of each hospital, in words
        self._exchange = exchange
        self._learning_rate, self._momentum, self._average = learning_rate, momentum, average
        self._velocity = np.zeros_like(self.weights)
        self._asked = ""  # the digest of the weights of this round
        self._later: list[NDArray[np.float64]] = []
        self._certificates: dict[str, Certificate] = {}  # the last one that each hospital has sent

    def train(self) -> Release[FederatedModel]:
        """Run all rounds and return the model, with the certificates of all hospitals that took part."""
        self.begin()
        with progress("Training together", lambda: self.number / self.study.rounds):
            while self.number < self.study.rounds:
                self.step()
        return self.finish()

    def begin(self) -> None:
        """Ask all hospitals to begin: each charges its ledger for the whole run, or refuses."""
        begun = self._ask("begin", {name: {} for name in self.study.hospitals}, "begun")
        if len(begun) < self.study.least:
            reasons = "; ".join(f"{name}: {why}" for name, why in sorted(self.refusals.items()))
            raise TacitError(
                "too-few-hospitals",
                f"{len(begun)} of {len(self.study.hospitals)} hospitals have begun, and the study needs at "
                f"least {self.study.least}",
                why=reasons or "the others did not reply",
                fix=Say("check the hospitals that did not begin, then begin again"),
            )

    def step(self) -> tuple[str, ...]:
        """Take one round and return who was in its sum; nobody where too few hospitals replied."""
        self.number += 1
        names, total = self._shared_sum() if self.study.noise == "shared" else self._own_sum()
        self.members.append(names)
        if names:
            hospitals = [self.study.hospitals[name] for name in names]
            expected = float(sum(one.rate * one.size for one in hospitals))
            self._velocity = self._momentum * self._velocity + total * (self.study.grid / expected)
            self.weights = self.weights - self._learning_rate * self._velocity
        if 2 * self.number > self.study.rounds:
            self._later.append(self.weights)
        if self._needs_all:
            self._collect([name for name in names if name not in self._certificates])
        return names

    @property
    def _needs_all(self) -> bool:
        """Whether the cost of the run needs the certificates of all hospitals: patients may be in several.

        They then pay like a group of as many units as there are hospitals that share the noise.
        """
        return self.study.noise == "shared" and not self.study.disjoint

    def _collect(self, names: Collection[str]) -> None:
        """Ask hospitals for their certificates, and keep those that state what the study says."""
        replies = self._ask("certificate", {name: {} for name in names}, "certificate") if names else {}
        for name, reply in replies.items():
            certificate = self._certificate(name, reply.fields.get("certificate"))
            if certificate is not None:
                self._certificates[name] = certificate

    def finish(self) -> Release[FederatedModel]:
        """Return the model so far, with the certificates of all hospitals that answered a round."""
        if self.number and not any(self.members):
            self._refuse_untrained()
        weights = np.mean(self._later, axis=0) if self._average and self._later else self.weights
        self._collect(self.study.hospitals)
        certificates = [self._certificates[name] for name in sorted(self._certificates)]
        lacking = {name for names in self.members for name in names} - set(self._certificates)
        if lacking and self._needs_all:
            raise TacitError(
                "too-few-hospitals",
                "the certificates of some hospitals that took part are missing: "
                f"{', '.join(sorted(lacking))}",
                why="the hospitals share their noise, and a patient may be in several of them; what such a "
                "patient pays depends on all of them",
                fix=Say("ask again when these hospitals can be reached"),
            )
        if not certificates:
            raise TacitError(
                "too-few-hospitals", "no hospital has sent its certificate",
                fix=Say("ask again when the hospitals can be reached"),
            )  # fmt: skip
        model = FederatedModel(self.study.model, self.study.document(), weights, tuple(self.members))
        joint = Certificate.together(certificates, disjoint=self.study.disjoint)
        return Release(model, joint)

    def _certificate(self, name: str, fields: Any) -> Certificate | None:
        """Return a hospital's certificate; None where it does not state what the study says."""
        try:
            law = fields["mechanisms"][0]["mechanism"]
            agreed = Cost.from_json(fields["cost"]) == self.study.cost(name)
            if agreed and law == self.study.mechanism(name).to_json()["mechanism"]:
                return Certificate(fields)
        except (TacitError, LookupError, TypeError, ValueError, AttributeError):
            pass
        self.refusals[name] = "its certificate does not state the cost of the study"
        return None

    def _refuse_untrained(self) -> None:
        """Refuse to release the first weights as a model: no round moved them."""
        reasons = "; ".join(f"{name}: {why}" for name, why in sorted(self.refusals.items()))
        raise TacitError(
            "too-few-hospitals",
            f"none of {self.number} rounds moved the model",
            why=reasons
            or "in each round too few hospitals replied, or they have answered these rounds before",
            fix=Either(
                Say("use the model of the first run"), Say("agree on a new study, which is charged again")
            ),
        )

    def _own_sum(self) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Add up the noisy sums of a round, each safe by itself."""
        size, number = len(self.weights), self.number
        replies = self._weigh("sum")
        total, names = np.zeros(size), []
        for name in sorted(replies):
            hospital_sum = self._array(replies[name], name, "sum", "i8", number)
            if hospital_sum is not None:
                names.append(name)
                total += hospital_sum
        return tuple(names), total

    def _shared_sum(self) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Add up masked sums; without all that were listed, nobody can read any of it."""
        size, number = len(self.weights), self.number
        replies = self._weigh("ready")
        ready = {
            name: one.fields.get("key")
            for name, one in replies.items()
            if one.fields.get("weights") == self._asked
        }
        nobody: tuple[tuple[str, ...], NDArray[np.float64]] = ((), np.zeros(size))
        if len(ready) < self.study.least:
            return nobody
        names = tuple(sorted(ready))
        fields: dict[str, JSON] = {"round": number, "members": [ready[name] for name in names]}
        masked = self._ask("members", dict.fromkeys(names, fields), "masked")
        missing = [name for name in names if name not in masked]
        if missing:  # a lost reply is sent again, unchanged
            masked |= self._ask("members", dict.fromkeys(missing, fields), "masked")
        total = np.zeros(size, dtype=np.uint64)
        for name in names:
            masked_sum = self._array(masked.get(name), name, "masked", "u8", number)
            if masked_sum is None:
                return nobody
            total += masked_sum
        return names, total.astype(np.int64).astype(np.float64)

    def _array(
        self, reply: Message | None, name: str, part: str, kind: str, number: int
    ) -> NDArray[Any] | None:
        """Return the numbers of a reply to this round; None where there are none."""
        try:
            if reply is None or reply.round() != number:
                return None
            if reply.fields.get("weights", self._asked) != self._asked:
                self.refusals[name] = "this round was answered before, for other weights"
                return None
            return reply.array(part, kind, len(self.weights))
        except TacitError as error:
            self.refusals[name] = f"{error.what}: {error.why}"
            return None

    def _weigh(self, answer_kind: str) -> dict[str, Message]:
        """Send the weights of a round to all hospitals."""
        requests = {name: {"round": self.number} for name in self.study.hospitals}
        self._asked = weights_digest(self.weights)
        return self._ask("round", requests, answer_kind, weights=self.weights)

    def _ask(
        self, kind: str, requests: Mapping[str, Mapping[str, JSON]], answer_kind: str, **arrays: NDArray[Any]
    ) -> dict[str, Message]:
        """Send a message of one kind to hospitals, and return the replies of the kind that is wanted."""
        sent = {name: pack(Message(kind, self._digest, fields, arrays)) for name, fields in requests.items()}
        replies: dict[str, Message] = {}
        for name, data in self._exchange(sent).items():
            if name not in sent:
                continue
            try:
                reply = unpack(data)
            except TacitError as error:
                self.refusals[name] = f"{error.what}: {error.why}"
                continue
            if reply.kind == answer_kind and reply.study == self._digest:
                replies[name] = reply
            else:
                sentence, code = (str(reply.fields.get(part, "")) for part in ("what", "code"))
                self.refusals[name] = f"{sentence or 'an unexpected reply'}{f' ({code})' if code else ''}"
        return replies
