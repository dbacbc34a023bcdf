"""One hospital in a study: it answers messages, and enforces by itself what was agreed.

Each instalment of its run answers one round.
"""

from __future__ import annotations

import base64
import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import DELTA, Argument, Content, Draft, Forecast, RunTask, Step, plain_table
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Either, Say, Set
from tacit.learn._examples import Examples, check_examples
from tacit.learn._questions import inner_question
from tacit.learn.federated._gradients import clip_whole
from tacit.learn.federated._messages import Message, pack, refusal, unpack, weights_digest
from tacit.learn.federated._secure_sums import RoundKey, mask_for, read_members
from tacit.parameters import Anything, Choice
from tacit.report import short_percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON, AnswerTable, Certificate, Goal, Noisy, Plan, Release, Run
    from tacit.learn.federated._secure_sums import HospitalKey
    from tacit.learn.federated._study import Participant, Study


_BLOCK = 2**21  # about so many numbers are in memory at a time


@dataclass(slots=True)
class RoundWanted:
    """Which round the next instalment answers, with which weights; then the noisy sum that came out."""

    number: int = 0
    weights: NDArray[np.float64] | None = None
    noisy: NDArray[np.int64] | None = field(default=None, repr=False)


class RoundAnswer(Content):
    """One round of one hospital: which weights were asked about, and of own noise the noisy sum.

    The sum of shared noise holds one share only. It is never stored, and leaves under a mask.
    """

    kind: ClassVar[str] = "federated-round"
    __slots__ = ("number", "sums", "weights")

    def __init__(self, number: int, weights: str, sums: NDArray[np.int64] | None) -> None:
        self.number = number
        self.weights = weights
        self.sums = sums

    def to_json(self) -> JSON:
        """Return the answer as JSON."""
        sums = None if self.sums is None else _text(self.sums)
        return {"round": self.number, "weights": self.weights, "sums": sums}

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the answer back."""
        sums = document["sums"]
        return cls(int(document["round"]), str(document["weights"]), None if sums is None else _numbers(sums))

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the noisy sums; one line without a sum where it left under a mask."""
        sums = [None] if self.sums is None else self.sums.tolist()
        yield "sums", plain_table({"place": list(range(len(sums)))}, {"sum": sums})

    def __repr__(self) -> str:
        content = "a masked sum" if self.sums is None else f"{len(self.sums):,} noisy sums"
        return f"round {self.number}: {content}"


def draft_rounds(
    data: Examples, goal: Goal, *, study: Study, hospital: str, wanted: RoundWanted
) -> Draft[RoundAnswer]:
    """Draft the run of a hospital in a study; ``wanted`` says which round the next instalment answers."""
    step: Step[_RoundSums] = Step(study.mechanism(hospital), lambda sums, _: sums)

    def reading(number: int, noisy: Mapping[int, Sequence[Noisy]], _: Fraction) -> RoundAnswer:
        [[round_number, weights, sums]] = noisy[number]
        return RoundAnswer(int(round_number), str(weights), None if sums is None else _numbers(sums))

    task = RunTask(
        document=lambda: {"study": study.document(), "hospital": hospital},
        instalments=study.rounds,
        steps_of=lambda _: (step,),
        open=lambda _: _RoundSums(study, data, wanted),
        reading=reading,
        subject=wanted,
    )
    return Draft(
        task=task,
        asked=f"train together: {study.name}",
        forecast=lambda: _forecast(study),
        facts=lambda: _facts(study, hospital),
        goal=goal,
    )


class _RoundSums:
    """The sums of one round over a sample of patients; see `tacit.mechanisms.StepSums`."""

    def __init__(self, study: Study, data: Examples, wanted: RoundWanted) -> None:
        self._study = study
        self._arrays = [np.asarray(one) for one in data._arrays]  # noqa: SLF001 - learning's own
        self._rows = data.units()
        self._wanted = wanted
        self._weights = np.asarray(wanted.weights)

    @property
    def units(self) -> int:
        """How many patients there are."""
        return len(self._rows)

    def sums(self, sample: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up the clipped gradients of the sampled patients, in integers."""
        size = self._study.model.dimension
        total = np.zeros(size, dtype=np.int64)
        some = max(1, _BLOCK // (size * self._rows.shape[1]))
        for start in range(0, len(sample), some):
            rows = self._rows[sample[start : start + some]]
            total += clip_whole(self._of_patients(rows), float(self._study.clip)).sum(axis=0)
        return total

    def _of_patients(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the gradient of each patient: the sum over the patient's examples."""
        present = rows >= 0
        each = self._of_examples(rows[present])
        padded = np.zeros((*rows.shape, each.shape[1]))
        padded[present] = each
        with np.errstate(all="ignore"):
            total: NDArray[np.float64] = padded.sum(axis=1)
        return total

    def _of_examples(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the gradient of each example; one on which the model fails is not a number.

        Other examples must not show in it, not even in its last bit, which weights can be chosen to enlarge.
        So each is asked for alone, unless the model promises that this makes no difference.
        """
        if getattr(self._study.model, "separate", False) is True:
            batch = self._asked(places)
            if batch is not None:
                return batch
        gradients = np.full((len(places), self._study.model.dimension), np.nan)
        for index in range(len(places)):
            single = self._asked(places[index : index + 1])
            if single is not None:
                gradients[index] = single[0]
        return gradients

    def _asked(self, places: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Ask the model for gradients; None where it fails."""
        try:
            X, y = (one[places] for one in self._arrays)
            each = np.asarray(self._study.model.gradients(self._weights, X, y), dtype=np.float64)
        except Exception:  # noqa: BLE001 - whatever a model does with hostile data
            return None
        return each if each.shape == (len(places), self._study.model.dimension) else None

    def update(self, noisy: Any) -> None:
        """Keep the noisy sum for the reply."""
        self._wanted.noisy = np.asarray(noisy, dtype=np.int64)

    def result(self) -> Any:
        """Return what is stored: the round, and the noisy sum where it is safe by itself."""
        has_own_noise = self._study.noise == "own" and self._wanted.noisy is not None
        digest = weights_digest(self._weights)
        return [self._wanted.number, digest, _text(self._wanted.noisy) if has_own_noise else None]


def _text(numbers: Any) -> str:
    return base64.b64encode(np.asarray(numbers).astype("<i8").tobytes()).decode()


def _numbers(text: str) -> NDArray[np.int64]:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<i8").astype(np.int64)


def _forecast(study: Study) -> list[Forecast]:
    """Say what to expect of the sum of one round, as the coordinator sees it."""
    total = float(study.sigma) * (len(study.hospitals) / study.shares) ** 0.5
    return [
        Forecast(
            "sum",
            "clipped gradients of a round, for one weight, over all hospitals",
            f"{study.noise}, {total:.4g} clips in all",
            1.96 * total * float(study.clip),
        )
    ]


def _facts(study: Study, hospital: str) -> list[tuple[str, str]]:
    """Say what is agreed, for the plan."""
    participant = study.hospitals[hospital]
    lines = [
        ("study", f"{study.name}, with {len(study.hospitals)} hospitals"),
        ("rounds", f"{study.rounds:,}, each with {_sample(participant.rate)}"),
        ("clip", f"the gradient of one patient is at most {float(study.clip):.4g} long"),
        ("noise", f"{study.noise}, {float(study.sigma):.4g} clips in each sum"),
    ]
    if study.noise == "shared":
        worst_epsilon = float(study.cost(hospital, honest=1).epsilon(delta=study.delta))
        lines += [
            ("hidden shares", f"at least {study.shares} in each sum of at least {study.least} hospitals"),
            ("if all others collude", f"epsilon {worst_epsilon:.4g} instead of {float(study.epsilon):.4g}"),
        ]
    return lines


def _sample(rate: Fraction) -> str:
    return (
        "all patients" if rate == 1 else f"a random sample of {short_percent(float(rate), 4)} of the patients"
    )


ROUNDS = inner_question(
    name="rounds", words="Answer the rounds of a study", draft=draft_rounds, takes=frozenset({DELTA}),
    example="epsilon=2, delta=1e-6",
    arguments=(
        Argument("study", Anything("the agreed study"), needed=True),
        Argument("hospital", Anything("which of its hospitals this is"), needed=True),
        Argument("wanted", Anything("which round comes next"), needed=True),
    ),
)  # fmt: skip


#: Refusals whose words are about the protocol alone; of any other, the coordinator learns only the code.
_OPEN_WORDS = frozenset({"bad-message", "study-differs", "members-refused"})
#: The same, but only in the hospital's own words: the ledger's name accounts, and count entries of others.
_OWN_WORDS = frozenset({"run-finished", "instalment-lost"})


@dataclass(slots=True)
class _OpenRound:
    """A round of shared noise between the two messages: the key, the share, and the reply once it is made."""

    key: RoundKey
    share: NDArray[np.int64] | None
    members: object = None
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
            mine = error.facts.get("hospital") == self.name
            if mine or error.code in _OPEN_WORDS:
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
        account = self._data.name
        above = ledger.account(account).parent
        while above is not None:
            charges = (one for one in ledger.history(above) if one.kind == "run" and one.account != account)
            other = next((one.account for one in charges if one.asked == self.plan.asked), None)
            if other is not None:
                raise TacitError(
                    "not-allowed",
                    f"the account {above!r} above {account!r} has paid for {other!r} in this study",
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
        open_round = self._open.get(number)
        return None if open_round is None or open_round.process != os.getpid() else open_round

    def _draw(self, number: int, weights: NDArray[np.float64]) -> None:
        """Compute a round, once and for all; it is stored before anything leaves."""
        assert self._run is not None  # noqa: S101 - begun
        self._wanted.number, self._wanted.weights, self._wanted.noisy = number, weights, None
        release = self._run.next()
        self._answered[number] = release
        if self.study.noise == "shared":
            assert self._key is not None  # noqa: S101 - checked at the start
            self._open.clear()  # older rounds are over: their keys and shares go
            round_key = RoundKey(self._digest, number, self.name, self._key)
            self._open[number] = _OpenRound(round_key, self._wanted.noisy)
        self._wanted.noisy = None

    def _masked(self, message: Message) -> bytes:
        """Mask the sum of a round for one list of members; never for a second one."""
        number, member_list = message.round(), message.fields.get("members")
        open_round = self._opened(number)
        if open_round is None:
            raise TacitError(
                "members-refused",
                f"{self.name} has no open round {number}",
                why="it did not answer this round, or a later one has begun",
                fix=Say("send the weights of the round first"),
            )
        if open_round.share is None:
            if open_round.members != member_list:
                raise TacitError(
                    "members-refused",
                    f"{self.name} has masked round {number} for another list of members",
                    why="the difference between two sums would show single hospitals",
                    fix=Say("go on with the next round"),
                )
            return open_round.reply
        identities = {name: one.key for name, one in self.study.hospitals.items()}
        members = read_members(
            member_list, own_key=open_round.key.signed, study=self._digest, number=number,
            identities=identities, min_members=self.study.least,
        )  # fmt: skip
        mask = mask_for(
            open_round.key, members, study=self._digest, number=number, size=len(open_round.share)
        )
        share, open_round.share, open_round.members = open_round.share, None, member_list
        open_round.reply = self._say("masked", {"round": number}, masked=share.astype(np.uint64) + mask)
        return open_round.reply

    def _say(self, kind: str, fields: Mapping[str, JSON], **arrays: NDArray[Any]) -> bytes:
        return pack(Message(kind, self._digest, {"hospital": self.name, **fields}, arrays))


def _check(name: str, study: Study, data: Examples, key: HospitalKey | None) -> None:
    """Refuse a hospital that does not fit its study."""
    Choice(tuple(sorted(study.hospitals))).read("name", name)
    participant = study.hospitals[name]
    check_examples(data, 2, "with features and labels")
    _check_data(study, data, participant)
    if study.noise == "shared" and (key is None or key.public != participant.key):
        raise bad_parameter(
            "key", f"the secret key of {name}", key, fix=Code('HospitalKey.load("hospital.key")')
        )
    _check_separate(study)


def _check_data(study: Study, data: Examples, participant: Participant) -> None:
    """Refuse examples that are not declared as the study says: public facts and types decide."""
    data.refuse_untyped()  # first: the kind of an array of objects follows from its cells
    X, y = study.model.example()
    arrays = data._arrays  # noqa: SLF001 - learning's own
    shape, agreed = [np.shape(one)[1:] for one in arrays], [X.shape[1:], y.shape[1:]]
    kinds = {np.asarray(one).dtype.kind for one in arrays}
    size = participant.size
    facts = (
        (data.size == size, f"declared with the size of the study, {size:,}", data.size),
        (data.adjacency == "add/remove", "declared with the adjacency add/remove", data.adjacency),
        (shape == agreed, f"features of the shape {X.shape[1:]} and one label for each example", shape[0]),
        (kinds <= set("fiub"), "arrays of numbers", ", ".join(sorted(kinds))),
    )
    for fits, must_be, declared in facts:
        if not fits:
            raise bad_parameter(
                "data", must_be, declared, why="otherwise a whole round could fail",
                fix=Code(f"tc.learn.examples(X, y, unit=tc.Unit.row(), size={size}, budget=budget)"),
            )  # fmt: skip


def _check_separate(study: Study) -> None:
    """Refuse a model whose gradients mix examples, or that fails, tried on invented examples."""
    X, y = study.model.example()
    weights = study.model.start() + np.linspace(-0.1, 0.1, study.model.dimension)
    try:
        batch = np.asarray(study.model.gradients(weights, X, y), dtype=np.float64)
        each = [np.asarray(study.model.gradients(weights, X[i : i + 1], y[i : i + 1])) for i in range(len(X))]
        promised = getattr(study.model, "separate", False) is True  # to the last bit
        separate = batch.shape == (len(X), study.model.dimension) and np.allclose(
            batch, np.concatenate(each), rtol=0 if promised else 1e-3, atol=0 if promised else 1e-5,
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
