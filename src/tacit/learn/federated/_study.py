"""A study: what hospitals agree on before they train together. All of it is public."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from tacit.accounting import Budget, Cost, calibrate
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Code, Either, Say, Set
from tacit.learn.estimators._fits import read_delta
from tacit.learn.federated._gradients import CLIP_STEPS, MAX_WEIGHTS, Softmax
from tacit.mechanisms import SampledSteps, SharedSteps
from tacit.parameters import Choice, Instance, Integer, Needed, Share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core import JSON
    from tacit.learn.federated._gradients import GradientModel

_SCHEMA = "tacit/study/1"
_MAX_ROUNDS = 100_000
_MAX_HOSPITALS = 50  # every pair exchanges keys in every round
_MIN_SHARE = 20  # grid steps: below it, shares of noise would not add up to Gaussian noise


@dataclass(frozen=True, slots=True)
class Participant:
    """What a study says of one hospital.

    Parameters
    ----------
    size
        About how many patients it has: declared from public knowledge, never counted.
    rate
        The share of its patients that each round samples, in (0, 1].
    key
        The public key of the hospital (`HospitalKey.public`); only shared noise needs it.
    """

    size: int
    rate: Fraction = Fraction(1)
    key: str = ""

    def __post_init__(self) -> None:
        count("size", self.size, zero=False)
        share = Share(instead=1).read("rate", self.rate)
        object.__setattr__(self, "rate", share)
        if self.key and not re.fullmatch("[0-9a-f]{64}", str(self.key)):
            fix = Code("key=HospitalKey.generate().public")
            raise bad_parameter("key", "64 hexadecimal signs", self.key, fix=fix)

    def document(self) -> JSON:
        """Return it as JSON."""
        return {"size": self.size, "rate": str(self.rate), "key": self.key}


@dataclass(frozen=True, slots=True)
class Study:
    """What hospitals train together, and what each of them does to protect its patients; made by `study`.

    Every hospital holds its own copy and does what this copy says: it answers so many rounds and no more,
    clips each patient's gradient, samples and adds noise as stated. A coordinator cannot change any of it.

    Parameters
    ----------
    sigma
        The noise in a sum, in clips: of each hospital for own noise, of the hidden shares for shared noise.
    colluding, dropouts
        For shared noise: how many other hospitals may read together with the coordinator, and how many may
        be missing from a sum.
    disjoint
        Whether the hospitals assert that no patient is in two of them.
    """

    name: str
    model: GradientModel
    hospitals: Mapping[str, Participant]
    rounds: int
    clip: Fraction
    sigma: Fraction
    noise: Literal["own", "shared"]
    epsilon: Fraction
    delta: Fraction
    colluding: int
    dropouts: int
    disjoint: bool

    @property
    def least(self) -> int:
        """How many hospitals must be in a sum."""
        return len(self.hospitals) - self.dropouts if self.noise == "shared" else 1

    @property
    def shares(self) -> int:
        """How many shares of noise in a sum stay hidden, at least."""
        return self.least - self.colluding if self.noise == "shared" else 1

    @property
    def grid(self) -> float:
        """What one whole step of a gradient is worth."""
        return float(self.clip / CLIP_STEPS)

    @property
    def digest(self) -> str:
        """The digest of the study, which every message names."""
        return hashlib.sha256(json.dumps(self.document(), sort_keys=True).encode()).hexdigest()

    def mechanism(self, hospital: str, *, honest: int | None = None) -> SampledSteps | SharedSteps:
        """Return the mechanism of one round of a hospital.

        ``honest`` states the cost for another number of hidden shares than the study promises.
        """
        rate, model = self.hospitals[hospital].rate, self.model
        if self.noise == "own":
            return SampledSteps(sigma=self.sigma * CLIP_STEPS, sensitivity=CLIP_STEPS, rate=rate, steps=1)
        share = math.isqrt(math.ceil((self.sigma * CLIP_STEPS) ** 2 / self.shares) - 1) + 1
        assumes = (
            f"no more than {self.colluding} of the other {len(self.hospitals) - 1} hospitals read along with "
            f"the coordinator; each sum then holds at least {self.shares} hidden shares of the noise"
        )
        return SharedSteps(
            sigma=max(share, _MIN_SHARE), sensitivity=CLIP_STEPS, rate=rate, steps=1,
            shares=self.shares if honest is None else honest, dimension=model.dimension, assumes=assumes,
        )  # fmt: skip

    def cost(self, hospital: str, *, honest: int | None = None) -> Cost:
        """Return what the whole run costs one patient of a hospital.

        Parameters
        ----------
        hospital
            The name of the hospital.
        honest
            How many shares of the noise stay hidden in fact, if not as many as the study promises.
        """
        return self.rounds * self.mechanism(hospital, honest=honest).cost

    def document(self) -> dict[str, JSON]:
        """Return the study as JSON; numbers exactly."""
        return {
            "schema": _SCHEMA, "name": self.name, "model": self.model.document(),
            "hospitals": {name: self.hospitals[name].document() for name in sorted(self.hospitals)},
            "rounds": self.rounds, "clip": str(self.clip), "sigma": str(self.sigma), "noise": self.noise,
            "epsilon": str(self.epsilon), "delta": str(self.delta), "colluding": self.colluding,
            "dropouts": self.dropouts, "disjoint": self.disjoint,
        }  # fmt: skip

    @classmethod
    def from_json(cls, document: Any, *, model: GradientModel | None = None) -> Study:
        """Read a study from its document; ``model`` is needed where it is not one of Tacit's own.

        Examples
        --------
        >>> from tacit.learn.federated import Participant, Softmax, study
        >>> two = {"north": Participant(200), "south": Participant(300)}
        >>> made = study("flu", Softmax(4, 2), two, rounds=10, sigma=20, delta=1e-5, noise="own")
        >>> Study.from_json(made.document()).digest == made.digest
        True
        """
        try:
            gradient_model = model if model is not None else read_model(document["model"])
            agreed = study(
                document["name"], gradient_model,
                {
                    name: Participant(one["size"], _exact(one["rate"]), one["key"])
                    for name, one in document["hospitals"].items()
                },
                rounds=document["rounds"], clip=_exact(document["clip"]), noise=document["noise"],
                sigma=_exact(document["sigma"]), epsilon=_exact(document["epsilon"]),
                delta=_exact(document["delta"]), colluding=document["colluding"],
                dropouts=document["dropouts"], disjoint=document["disjoint"],
            )  # fmt: skip
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise _unreadable() from None
        if agreed.document() != document:
            raise _unreadable()
        return agreed

    def __repr__(self) -> str:
        return (
            f"Study({self.name!r}: {len(self.hospitals)} hospitals, {self.rounds} rounds, "
            f"{self.noise} noise, epsilon {float(self.epsilon):.6g}, delta {float(self.delta):.6g})"
        )


def study(
    name: str,
    model: GradientModel,
    hospitals: Mapping[str, Participant],
    *,
    rounds: int,
    delta: Number,
    epsilon: Number | None = None,
    sigma: Number | None = None,
    clip: Number = 1,
    noise: Literal["own", "shared"] = "shared",
    colluding: int = 1,
    dropouts: int = 0,
    disjoint: bool = False,
) -> Study:
    """Agree on a study: what hospitals train together, and with how much noise.

    Guarantee
    ---------
    Whatever the coordinator does, the whole run is (epsilon, delta)-private for each patient of each
    hospital: for own noise, whoever reads its replies; for shared noise, if at most ``colluding`` other
    hospitals read together with the coordinator. The proof is in ``docs/proofs/hospitals.md``.

    Parameters
    ----------
    name
        The name of the study.
    model
        What is trained: `Softmax`, `TorchGradients`, or any `GradientModel`.
    hospitals
        The hospitals by name, at most 50.
    rounds
        How many rounds each hospital answers, at most.
    epsilon, delta
        What one patient pays for the whole run, at most. The noise follows from it.
    sigma
        The noise, in clips, instead of epsilon; with both, the noise must keep the promise.
    clip
        How long the gradient of one patient may be.
    noise
        ``"shared"``: hospitals add up their sums under masks, and each adds a share of the noise.
        ``"own"``: each hospital adds all the noise that its patients need, and trusts nobody.
    colluding, dropouts
        For shared noise: how many other hospitals may read together with the coordinator, and how many may
        be missing from a sum.
    disjoint
        Whether the hospitals assert that no patient is in two of them.

    Examples
    --------
    >>> hospitals = {f"hospital {i}": Participant(size=200) for i in range(10)}
    >>> made = study("digits", Softmax(64, 10), hospitals, rounds=60, epsilon=1, delta=1e-5, noise="own")
    >>> round(float(made.sigma), 2), float(made.cost("hospital 3").epsilon(delta=1e-5)) <= 1
    (28.9, True)
    """
    _check_names(name, hospitals, noise)
    _check_counts(len(hospitals), noise, colluding, dropouts)
    if not 0 < model.dimension <= MAX_WEIGHTS:
        raise bad_parameter("model", f"one of at most {MAX_WEIGHTS:,} weights", model.dimension)
    small = read_delta(delta, max(one.size for one in hospitals.values()))
    if sigma is None:
        promise: Needed[Number] = Needed(1, "where sigma is omitted")
        promise.read("epsilon", epsilon)
    Integer(1, _MAX_ROUNDS, instead=100).read("rounds", rounds)
    shared = noise == "shared"
    facts = Study(
        name, model, dict(hospitals), int(rounds), rational("clip", clip),
        rational("sigma", 1 if sigma is None else sigma), noise,
        rational("epsilon", 1 if epsilon is None else epsilon), small,
        colluding if shared else 0, dropouts if shared else 0, bool(disjoint),
    )  # fmt: skip
    return _priced(facts, epsilon=epsilon, sigma=sigma)


def _priced(facts: Study, *, epsilon: Number | None, sigma: Number | None) -> Study:
    """Choose the noise for the promise, or state the promise that the noise keeps."""
    from dataclasses import replace

    often = max(facts.hospitals, key=lambda name: facts.hospitals[name].rate)  # who samples most pays most
    if sigma is None:
        target = Budget(epsilon=facts.epsilon, delta=facts.delta)
        sigma_needed = calibrate(lambda s: replace(facts, sigma=rational("sigma", s)).cost(often), target)
        return replace(facts, sigma=rational("sigma", sigma_needed))
    cost = facts.cost(often)
    if epsilon is None:
        reached = Fraction(math.ceil(float(cost.epsilon(delta=facts.delta)) * 10**6), 10**6)
        facts = replace(facts, epsilon=max(reached, Fraction(1, 10**6)))
    if not cost.fits(Budget(epsilon=facts.epsilon, delta=facts.delta)):
        raise bad_parameter("sigma", "enough noise for the epsilon and delta of the study", sigma,
                            fix=Set(sigma=None))  # fmt: skip
    return facts


_PARTICIPANT = Instance(Participant, '{"north": Participant(size=200)}', "a Participant for each name")


def _check_names(name: object, hospitals: Mapping[str, Participant], noise: object) -> None:
    _check_name("name", name)
    Choice(("own", "shared")).read("noise", noise)
    if not 1 <= len(hospitals) <= _MAX_HOSPITALS:
        example = Code('hospitals={"north": Participant(size=200)}')
        raise bad_parameter("hospitals", f"1 to {_MAX_HOSPITALS} hospitals", len(hospitals), fix=example)
    for hospital, participant in hospitals.items():
        _check_name("the name of a hospital", hospital)
        _PARTICIPANT.read("hospitals", participant)
    keys = [participant.key for participant in hospitals.values()]
    if noise == "shared" and ("" in keys or len(set(keys)) != len(keys)):
        raise TacitError(
            "bad-parameter",
            "each hospital needs a public key of its own for shared noise",
            why="hospitals recognise each other by these keys; otherwise a coordinator could pose as all of "
            "them",
            fix=Either(Code("Participant(size=200, key=HospitalKey.generate().public)"), Set(noise="own")),
        )


def _check_counts(hospitals: int, noise: str, colluding: object, dropouts: object) -> None:
    bad, gone = count("colluding", colluding), count("dropouts", dropouts)  # type: ignore[arg-type]
    if noise == "own":
        return
    why = "every hospital knows its own share of the noise and can subtract it"
    Integer(1, why=why).read("colluding", bad)
    if hospitals - gone - bad < 1 or hospitals < 2:
        raise TacitError(
            "bad-parameter",
            f"{hospitals} hospitals, of which {gone} may be missing and {bad} may collude, leave nobody "
            "whose noise stays hidden",
            why="at least one hidden share of the noise must be in every sum",
            fix=Either(Set(dropouts=0, colluding=1), Set(noise="own"), Say("find more hospitals")),
        )


def read_model(document: Any) -> GradientModel:
    """Read a model of Tacit's own from its document; raises ``ValueError`` where it is another one."""
    if document["kind"] != "softmax":
        raise ValueError("not a model of Tacit")
    return Softmax(document["features"], document["classes"])


def _unreadable() -> TacitError:
    return TacitError(
        "study-differs",
        "this is not a study that this version of Tacit can read",
        why="a part of it is missing or was changed, or its model is not one of Tacit's own",
        fix=Either(Say("load the study as it was written"), Code("Study.from_json(document, model=model)")),
    )


def _exact(text: object) -> Fraction:
    """Read a number of a study's document: a fraction of short numbers."""
    if not isinstance(text, str) or re.fullmatch(r"\d{1,60}(/[1-9]\d{0,59})?", text) is None:
        raise ValueError("not a fraction")
    return Fraction(text)


def _check_name(parameter: str, text: object) -> None:
    """Refuse a name that cannot be shown."""
    if not (isinstance(text, str) and 0 < len(text) <= 200 and text.isprintable()):
        raise bad_parameter(parameter, "printable text of at most 200 characters", text, fix=Code('"flu"'))
