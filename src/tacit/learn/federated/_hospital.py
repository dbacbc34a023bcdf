"""One hospital in a study: it answers messages, and enforces by itself what was agreed."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Either, Say, Set
from tacit.learn._examples import Examples
from tacit.learn.federated._hospital_round import ROUNDS, RoundWanted
from tacit.learn.federated._masks import RoundKey, mask_for, read_members
from tacit.learn.federated._messages import Message, pack, refusal, unpack
from tacit.parameters import Choice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tacit.core import JSON, Certificate, Plan, Release, Run
    from tacit.learn.federated._hospital_key import HospitalKey
    from tacit.learn.federated._hospital_round import RoundAnswer
    from tacit.learn.federated._study import Study

#: Refusals whose words are about the protocol alone; of any other, the coordinator learns only the code.
_OPEN_WORDS = frozenset({"bad-message", "study-differs", "members-refused"})
#: The same, but only in the hospital's own words: the ledger's name accounts, and count entries of others.
_OWN_WORDS = frozenset({"run-finished", "instalment-lost"})


@dataclass(slots=True)
class _OpenRound:
    """A round of shared noise between the two messages: the key, the share, and the reply once it is made."""

    key: RoundKey
    share: NDArray[np.int64] | None
    listed: object = None
    reply: bytes = b""
    process: int = field(default_factory=os.getpid)


class Hospital:
    """One hospital of a study: bytes come in, bytes go out, and its patients stay private.

    Guarantee: the whole run is charged to the hospital's own ledger before the first round. Each round is
    answered once, at most as many as agreed, always with the agreed clip, sample and noise. The weights may
    be anything. A round that is asked again gets the stored reply. Of shared noise, a sum leaves under
    masks only, once in a round, for a list of members that is long enough. Refusals depend on public facts.

    Parameters
    ----------
    name
        Its name in the study.
    study
        The study, as this hospital agreed to it.
    data
        Its patients (`tacit.learn.examples`): features and labels, with their own budget and ledger.
    key
        Its secret key; only shared noise needs it.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> from tacit.learn.federated import Participant, Softmax, study
    >>> agreed = study("flu", Softmax(4, 2), {"north": Participant(200)}, rounds=10, epsilon=1, delta=1e-5,
    ...                noise="own")
    >>> patients = tc.learn.examples(np.zeros((200, 4)), np.zeros(200), unit=tc.Unit.row(), size=200,
    ...                              name="north", budget=tc.Budget(epsilon=2, delta=1e-4))
    >>> north = Hospital("north", agreed, patients)
    >>> float(north.plan.cost.epsilon(delta=1e-5)) <= 1
    True
    """

    def __init__(self, name: str, study: Study, data: Examples, key: HospitalKey | None = None) -> None:
        _check(name, study, data, key)
        self.name = name
        self.study = study
        self._data = data
        self._digest = study.digest
        self._key = key
        self._wanted = RoundWanted()
        self._run: Run[RoundAnswer] | None = None
        self._answered: dict[int, Release[RoundAnswer]] = {}
        self._open: dict[int, _OpenRound] = {}
        self._lock = threading.Lock()
        self.last_refusal: TacitError | None = None  # with all its words, for the hospital itself
        question = ROUNDS.ask(data, study=study, hospital=name, wanted=self._wanted)
        self.plan: Plan[RoundAnswer] = question.plan(epsilon=study.epsilon, delta=study.delta)

    def __repr__(self) -> str:
        return f"Hospital({self.name!r} in {self.study.name!r})"

    def handle(self, message: bytes) -> bytes:
        """Answer a message of the coordinator; a refusal is an answer too.

        Guarantee: as for the class. Whatever the bytes are, nothing but a reply of the protocol comes back.
        """
        with self._lock:
            try:
                return self._answer(unpack(message))
            except TacitError as error:
                self.last_refusal = error
                return refusal(self._digest, self._in_public(error))
            except Exception:  # noqa: BLE001 - no detail leaves, whatever went wrong
                return refusal(self._digest, self._in_public(None))

    def _in_public(self, error: TacitError | None) -> TacitError:
        """Return a refusal as the coordinator may read it: without paths, budgets or other details."""
        if error is not None and error.code in _OPEN_WORDS | _OWN_WORDS:
            own = error.facts.get("hospital") == self.name
            if own or error.code in _OPEN_WORDS:
                return error
        code = "release-failed" if error is None else error.code
        return TacitError(code, f"{self.name} cannot answer", fix=Say("go on with the next round"))

    def begin(self) -> None:
        """Charge the whole run to the hospital's ledger, or find that it was charged before."""
        if self._run is not None:
            return
        if self.study.noise == "shared" and not self.study.disjoint:
            self._refuse_common_account()
        self._run = self.plan.run(purpose=f"train together: {self.study.name}")
        self._answered = {one.content.number: one for one in self._run}

    def _refuse_common_account(self) -> None:
        """Refuse to begin if another hospital of the study was charged to an account above this one.

        That account would add up the costs. A patient of both moves one sum twice against one noise, which
        costs more than the sum.
        """
        ledger: Any = self._data._ledger  # noqa: SLF001 - learning's own
        own = self._data.name
        above = ledger.account(own).parent
        while above is not None:
            charges = (one for one in ledger.history(above) if one.kind == "run" and one.account != own)
            other = next((one.account for one in charges if one.asked == self.plan.asked), None)
            if other is not None:
                raise TacitError(
                    "not-allowed",
                    f"the account {above!r} above {own!r} has paid for {other!r} in this study",
                    why="it adds up the costs of both, but a patient of both costs more than the sum, "
                    "because the hospitals share their noise; nothing was charged",
                    fix=Either(
                        Set(disjoint=True), Set(noise="own"), Say("give each hospital a ledger of its own")
                    ),
                )
            above = ledger.account(above).parent

    @property
    def certificate(self) -> Certificate:
        """The certificate of the last round that this hospital answered."""
        if not self._answered:
            raise TacitError(
                "instalment-not-drawn",
                f"{self.name} has not answered a round yet",
                fix=Say("ask for the certificate after the run"),
            )
        return self._answered[max(self._answered)].certificate

    def _answer(self, message: Message) -> bytes:
        if message.study != self._digest:
            raise TacitError(
                "study-differs",
                f"{self.name} has agreed to another study",
                why="rounds, noise, clip, sample, model or the list of hospitals are different",
                fix=Say("agree on one study, and give every hospital the same document"),
            )
        match message.kind:
            case "begin":
                self.begin()
                return self._say("begun", {"plan": self.plan.hash})
            case "round":
                return self._round(message)
            case "members":
                return self._masked(message)
            case "certificate":
                self.begin()
                return self._say("certificate", {"certificate": dict(self.certificate.fields)})
            case _:
                raise TacitError(
                    "bad-message",
                    "a hospital does not answer messages of this kind",
                    fix=Say("send begin, round, members or certificate"),
                )

    def _round(self, message: Message) -> bytes:
        """Answer a round with the noisy sum, or with the key for its masks."""
        number = message.round()
        weights = message.array("weights", "f8", self.study.model.dimension)
        if not np.isfinite(weights).all():
            raise TacitError(
                "bad-message",
                "the weights hold numbers that are not finite",
                why="no gradient can be computed with them",
                fix=Say("send finite weights, with a smaller step if they have diverged"),
            )
        if number > self.study.rounds:
            raise TacitError(
                "run-finished",
                f"{self.name} answers {self.study.rounds} rounds and no more",
                facts={"hospital": self.name},
                why="it has paid for this number of rounds",
                fix=Say("agree on a new study"),
            )
        self.begin()
        if number not in self._answered:
            self._draw(number, weights)
        answer = self._answered[number].content
        about: dict[str, JSON] = {"round": number, "weights": answer.weights}
        if self.study.noise == "own":
            return self._say("sum", about, sum=np.asarray(answer.sums))
        if self._opened(number) is None:
            raise TacitError(
                "instalment-lost",
                f"{self.name} has answered round {number} before",
                facts={"hospital": self.name},
                why="a later round has begun since, or the hospital was restarted: the masks are gone, and "
                "masking the same sum twice would show it",
                fix=Say("go on without it in this round"),
            )
        return self._say("ready", {**about, "key": self._open[number].key.signed.document()})

    def _opened(self, number: int) -> _OpenRound | None:
        """Return a round that this very process has opened: a copy of it must not mask the sum again."""
        opened = self._open.get(number)
        return None if opened is None or opened.process != os.getpid() else opened

    def _draw(self, number: int, weights: NDArray[np.float64]) -> None:
        """Compute a round, once and for all; it is stored before anything leaves."""
        assert self._run is not None  # noqa: S101 - begun
        self._wanted.number, self._wanted.weights, self._wanted.noisy = number, weights, None
        drawn = self._run.next()
        self._answered[number] = drawn
        if self.study.noise == "shared":
            assert self._key is not None  # noqa: S101 - checked at the start
            self._open.clear()  # older rounds are over: their keys and shares go
            made = RoundKey(self._digest, number, self.name, self._key)
            self._open[number] = _OpenRound(made, self._wanted.noisy)
        self._wanted.noisy = None

    def _masked(self, message: Message) -> bytes:
        """Mask the sum of a round for one list of members; never for a second one."""
        number, listed = message.round(), message.fields.get("members")
        opened = self._opened(number)
        if opened is None:
            raise TacitError(
                "members-refused",
                f"{self.name} has no open round {number}",
                why="it did not answer this round, or a later one has begun",
                fix=Say("send the weights of the round first"),
            )
        if opened.share is None:
            if opened.listed != listed:
                raise TacitError(
                    "members-refused",
                    f"{self.name} has masked round {number} for another list of members",
                    why="the difference between two sums would show single hospitals",
                    fix=Say("go on with the next round"),
                )
            return opened.reply
        identities = {name: one.key for name, one in self.study.hospitals.items()}
        members = read_members(
            listed, own=opened.key.signed, study=self._digest, number=number, identities=identities,
            least=self.study.least,
        )  # fmt: skip
        mask = mask_for(opened.key, members, study=self._digest, number=number, size=len(opened.share))
        share, opened.share, opened.listed = opened.share, None, listed
        opened.reply = self._say("masked", {"round": number}, masked=share.astype(np.uint64) + mask)
        return opened.reply

    def _say(self, kind: str, fields: Mapping[str, JSON], **arrays: NDArray[Any]) -> bytes:
        return pack(Message(kind, self._digest, {"hospital": self.name, **fields}, arrays))


def _check(name: str, study: Study, data: Examples, key: HospitalKey | None) -> None:
    """Refuse a hospital that does not fit its study."""
    Choice(tuple(sorted(study.hospitals))).read("name", name)
    own = study.hospitals[name]
    given: object = data
    if not isinstance(given, Examples) or len(data._arrays) != 2:  # noqa: SLF001 - learning's own
        raise bad_parameter("data", "examples with features and labels", type(data).__name__,
                            fix=Code("tc.learn.examples(X, y, unit=..., size=..., budget=...)"))  # fmt: skip
    if data.size != own.size:
        raise bad_parameter("data", f"declared with the size of the study, {own.size:,}", data.size,
                            fix=Set(size=own.size))  # fmt: skip
    if data.adjacency != "add/remove":
        raise bad_parameter("data", "declared with the adjacency add/remove", data.adjacency)
    if study.noise == "shared" and (key is None or key.public != own.key):
        raise bad_parameter(
            "key", f"the secret key of {name}", key, fix=Code('HospitalKey.load("hospital.key")')
        )
    X, y = study.model.example()
    if np.shape(data._arrays[0])[1:] != X.shape[1:] or np.shape(data._arrays[1])[1:] != y.shape[1:]:  # noqa: SLF001
        raise bad_parameter("data", f"features of the shape {X.shape[1:]} and one label for each example",
                            np.shape(data._arrays[0])[1:])  # fmt: skip  # noqa: SLF001
    data.refuse_untyped()
    kinds = {np.asarray(one).dtype.kind for one in data._arrays}  # noqa: SLF001
    if not kinds <= set("fiub"):
        raise bad_parameter("data", "arrays of numbers", ", ".join(sorted(kinds)),
                            why="one odd value could make a whole round fail")  # fmt: skip
    _check_separate(study)


def _check_separate(study: Study) -> None:
    """Refuse a model whose gradients mix examples, or that fails, tried on invented examples."""
    X, y = study.model.example()
    weights = study.model.start() + np.linspace(-0.1, 0.1, study.model.dimension)
    try:
        together = np.asarray(study.model.gradients(weights, X, y), dtype=np.float64)
        each = [np.asarray(study.model.gradients(weights, X[i : i + 1], y[i : i + 1])) for i in range(len(X))]
        promised = getattr(study.model, "separate", False) is True  # to the last bit
        separate = together.shape == (len(X), study.model.dimension) and np.allclose(
            together, np.concatenate(each), rtol=0 if promised else 1e-3, atol=0 if promised else 1e-5,
            equal_nan=True,
        )  # fmt: skip
    except (RuntimeError, ValueError, TypeError, IndexError):
        separate = False
    if not separate:
        raise TacitError(
            "bad-parameter",
            "the gradient of an example must not depend on other examples",
            why="tried on two invented examples, the model fails, or gives other gradients for both together "
            "than for each alone; one patient could then move the sum by more than the clip",
            fix=Say("use a model without batch normalisation, and a loss for each example"),
        )
