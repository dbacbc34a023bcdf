"""Attacks on model updates, in the lab: what a hospital sends after one step on its patients gives them away.

Whether a patient took part shows in the update, and the pictures of patients come back out of it. The network
is small enough to compute everything by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, SupportsIndex

import numpy as np

from tacit.accounting import Cost
from tacit.audit.lab._worlds import (
    Success,
    curve_table,
    from_trials,
    hashed_uniform,
    read_epsilons,
    read_trials,
)
from tacit.errors import bad_parameter
from tacit.fixes import Set
from tacit.parameters import Integer, Listed
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from tacit.exact import Number
    from tacit.mechanisms import DiscreteGaussian
    from tacit.show import Figure

    _Reals = npt.NDArray[np.float64]
    _Whole = npt.NDArray[np.int64]


#: The delta that goes with every epsilon of the attacks on updates.
DELTA: Final = Fraction(1, 10**5)
#: Whole grid steps in the clipping length: gradients are clipped to length 1.
GRID: Final = 2**20
_SIDE: Final = 8
_CLASSES: Final = 10
_MEMBERSHIP_STREAM: Final = 4000
_RELEASES: Final = 128  # noisy updates in each world of a run
_ROUNDS: Final = (1, 10, 100)
_CLOSE: Final = 0.02  # the largest difference of a pixel in a picture that counts as recovered
_SHOWN: Final = 8  # patients in the picture
_SERVERS: Final = ("honest", "trap")
_AREA_HEADER = ("epsilon", "noise in clipping lengths", "measured area", "largest area of any attacker")
_INVERSION_STREAM: Final = 1000  # the first of the hash's streams for weights and patients


@dataclass(frozen=True, slots=True, eq=False)
class Scans:
    """Pictures of patients, one line each with values from 0 to 1, and the class of each picture."""

    pictures: _Reals
    classes: _Whole

    @classmethod
    def of(cls, pictures: npt.ArrayLike | None, classes: npt.ArrayLike | None) -> Scans:
        """Read the pictures to attack, or draw 1,200 pictures of patients who do not exist."""
        if pictures is None or classes is None:
            return _synthetic(1200)
        scans = cls(np.asarray(pictures, dtype=np.float64), np.asarray(classes, dtype=np.int64))
        small = scans.pictures.ndim != 2 or len(scans.pictures) < 300 or scans.pictures.shape[1] > 4096
        if small or scans.classes.shape != (len(scans.pictures),):
            raise bad_parameter(
                "pictures",
                "at least 300 lines of at most 4,096 pixels, with one class each",
                (scans.pictures.shape, scans.classes.shape),
                fix=Set(pictures=None, classes=None),
            )
        if not (scans.pictures.min() >= 0 and scans.pictures.max() <= 1) or scans.classes.min() < 0:
            raise bad_parameter(
                "pictures", "between 0 and 1, with classes from 0 on", "other values", fix=Set(pictures=None)
            )
        return scans

    def pick(self, number: int, stream: int) -> Scans:
        """Return as many pictures as a public hash picks from the first three quarters."""
        order = np.argsort(hashed_uniform(np.arange(self._public), stream))[:number]
        return Scans(self.pictures[order], self.classes[order])

    @property
    def public(self) -> _Reals:
        """The pictures of the last quarter, from which an attacker knows what patients look like."""
        return self.pictures[self._public :]

    @property
    def _public(self) -> int:
        return 3 * len(self.pictures) // 4


def _synthetic(number: int) -> Scans:
    """Draw pictures of 8 x 8 pixels: a ring at a hashed place, and a bright or dark spot beside it."""
    index = np.arange(number)
    row, column = np.mgrid[:_SIDE, :_SIDE]
    east, north, radius, spot_row, spot_column, light, edge = (
        hashed_uniform(index, 100 + place)[:, None, None] for place in range(7)
    )
    far = np.hypot(row - 2.5 - 2 * north, column - 2.5 - 2 * east)
    ring = np.exp(-((far - 1.2 - 1.6 * radius) ** 2) / (0.4 + edge))
    spot = np.exp(-((row - 7 * spot_row) ** 2 + (column - 7 * spot_column) ** 2) / 1.5)
    speckle = hashed_uniform(np.arange(number * _SIDE**2), 107).reshape(number, _SIDE, _SIDE)
    pictures = np.clip(0.75 * ring + (0.2 + 0.6 * light) * spot + 0.12 * speckle, 0, 1)
    classes = (np.floor(5 * radius) * 2 + (light > 0.5)).astype(np.int64).ravel()
    return Scans(pictures.reshape(number, -1), classes)


@dataclass(frozen=True, slots=True, eq=False)
class ScanNetwork:
    """A network of two layers with ReLU between them, and its exact gradient for each patient.

    Attributes
    ----------
    first, first_bias, second, second_bias
        The weights that the server sends.
    alike
        Whether all rows of the first layer are alike: the trap of a dishonest server.
    """

    first: _Reals
    first_bias: _Reals
    second: _Reals
    second_bias: _Reals
    alike: bool = False

    @classmethod
    def honest(cls, scans: Scans, hidden: int, stream: int) -> ScanNetwork:
        """Return random weights of the usual size."""
        pixels, outputs = scans.pictures.shape[1], _outputs(scans)
        return cls(
            _normal((hidden, pixels), stream) / np.sqrt(pixels),
            np.zeros(hidden),
            _normal((outputs, hidden), stream + 1) / np.sqrt(hidden),
            np.zeros(outputs),
        )

    @classmethod
    def trap(cls, scans: Scans, hidden: int, stream: int) -> ScanNetwork:
        """Return weights that sort patients into bins: the method of Fowl and others (2022).

        Every unit measures the same brightness and fires above its own threshold, a quantile of the normal
        law that fits public pictures. Two neighbouring units differ by the patients between their thresholds.
        Output weights are alike, too, so that a patient moves all units that fire by the same amount.
        """
        from scipy.special import ndtri

        pixels, outputs = scans.pictures.shape[1], _outputs(scans)
        direction = 1 + 0.5 * _normal((pixels,), stream)
        direction /= hidden * (scans.public @ direction).std()  # activations stay small: no score is certain
        brightness = scans.public @ direction
        places = ndtri((np.arange(hidden) + 0.5) / hidden)
        places[0] -= 1  # the darkest patients fire at least one unit
        thresholds = brightness.mean() + brightness.std() * places
        column = _normal((outputs,), stream + 1)
        return cls(
            np.tile(direction, (hidden, 1)),
            -thresholds,
            np.tile(column[:, None], (1, hidden)),
            np.zeros(outputs),
            alike=True,
        )

    def gradients(self, scans: Scans) -> _Reals:
        """Return the gradient of the cross-entropy, one line for each patient."""
        before = scans.pictures @ self.first.T + self.first_bias
        after = np.maximum(before, 0)
        scores = after @ self.second.T + self.second_bias
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        error = likely / likely.sum(axis=1, keepdims=True)
        error[np.arange(len(error)), scans.classes] -= 1
        back = (error @ self.second) * (before > 0)
        parts = (
            back[:, :, None] * scans.pictures[:, None, :],
            back,
            error[:, :, None] * after[:, None, :],
            error,
        )
        return np.concatenate([part.reshape(len(error), -1) for part in parts], axis=1)

    def candidates(self, update: _Reals) -> _Reals:
        """Return the pictures that an attacker reads from one update: weight gradient by bias gradient.

        If one patient alone fires a unit, the unit's weight gradient is a multiple of the picture, and its
        bias gradient is that multiple. The sum of all units averages noise, if there is one patient. In a
        trap, the differences of neighbouring units are read as well.
        """
        units, pixels = self.first.shape
        weights = update[: units * pixels].reshape(units, pixels)
        biases = update[units * pixels : units * (pixels + 1)]
        between = [np.diff(weights, axis=0)] if self.alike else []
        weights = np.concatenate([weights, weights.sum(axis=0, keepdims=True), *between])
        between = [np.diff(biases)] if self.alike else []
        biases = np.concatenate([biases, biases.sum(keepdims=True), *between])
        fired = np.abs(biases) > 1e-12
        candidates: _Reals = weights[fired] / biases[fired, None]
        return candidates


def clipped(gradients: _Reals) -> _Reals:
    """Return the gradients, each shortened to length 1 at most."""
    lengths: _Reals = np.linalg.norm(gradients, axis=1, keepdims=True)
    shortened: _Reals = gradients / np.maximum(lengths, 1)
    return shortened


def on_grid(gradients: _Reals) -> _Whole:
    """Return gradients as whole grid steps: clipped, truncated toward zero, dropped if still too long."""
    steps = np.trunc(clipped(gradients) * GRID).astype(np.int64)
    steps[(steps**2).sum(axis=1) > GRID**2] = 0
    return steps


@dataclass(frozen=True, slots=True)
class InsiderScores:
    """How well an attacker who knows all patients but one reads one noisy sum of gradients.

    Attributes
    ----------
    success
        The measured advantage, with its bound.
    sigma
        The standard deviation of the noise, as a multiple of the clipping length.
    area, bound
        The measured area under the curve (AUC), and the largest of any attacker: Phi(1 / (sqrt(2) sigma)).
    """

    success: Success
    sigma: float
    area: float
    bound: float


def attack_as_insider(
    epsilon: Fraction, rest: _Whole, target: _Whole, trials: int
) -> tuple[InsiderScores, DiscreteGaussian]:
    """Release the sum with the target and without it, and score each release; also return the noise.

    The best score is the inner product with the target's gradient, which the insider knows (Neyman and
    Pearson 1933): without the target it is standard normal, with the target it is shifted by 1 / sigma.
    """
    from scipy.special import ndtr

    from tacit.mechanisms import DiscreteGaussian

    noise = DiscreteGaussian(epsilon=epsilon, delta=DELTA, sensitivity_squared=GRID**2)
    cost = Cost.gaussian(sigma=noise.sigma, sensitivity=GRID)
    length = float(np.linalg.norm(target))
    worlds = []
    for present in (1, 0):
        scores = [
            (np.asarray(noise.release(np.tile(rest + present * target, (some, 1)))) - rest) @ target
            for some in _portions(trials, target.size)
        ]
        worlds.append(np.concatenate(scores) / (length * float(noise.sigma)))
    shift = length / float(noise.sigma)
    guesses = (world > shift / 2 for world in worlds)
    sigma = float(noise.sigma) / GRID
    return InsiderScores(
        success=from_trials(epsilon, *guesses, bound=cost.advantage),
        sigma=sigma,
        area=area(*worlds),
        bound=float(ndtr(1 / (2**0.5 * sigma))),
    ), noise


def _portions(trials: int, width: int) -> list[int]:
    """Split the trials so that no portion has more than two million noisy numbers."""
    max_rows = max(1, 2_000_000 // width)
    return [min(max_rows, trials - first) for first in range(0, trials, max_rows)]


def area(members: _Reals, outsiders: _Reals) -> float:
    """Return the area under the curve (AUC): how often a member's score is above an outsider's."""
    ranks = np.searchsorted(np.sort(outsiders), members, side="left")
    ties = np.searchsorted(np.sort(outsiders), members, side="right") - ranks
    return float((ranks + ties / 2).mean() / len(outsiders))


def _outputs(scans: Scans) -> int:
    return max(_CLASSES, int(scans.classes.max()) + 1)


def _normal(shape: tuple[int, ...], stream: int) -> _Reals:
    from scipy.special import ndtri

    numbers: _Reals = ndtri(hashed_uniform(np.arange(int(np.prod(shape))), stream) * (1 - 1e-9) + 5e-10)
    return numbers.reshape(shape)


@dataclass(frozen=True, slots=True, repr=False)
class UpdateMembership(Drawn, Reportable):
    """Whether an update of a network reveals that a patient took part.

    Attributes
    ----------
    exact
        The area under the curve (AUC) of a simple test against exact updates, by the number of patients.
    private
        The same against updates with noise, for each epsilon.
    insiders
        What an attacker who knows all other patients achieves against the noise, with the bounds.
    over_rounds
        The largest area of any attacker after several rounds with the same noise in each, for each epsilon.
    runs
        How often the simple test was repeated.
    """

    exact: dict[int, float]
    private: dict[float, dict[int, float]]
    insiders: tuple[InsiderScores, ...]
    over_rounds: dict[float, dict[int, float]]
    runs: int

    def report(self) -> Report:
        """Return the facts to show."""
        smallest = min(self.exact)
        lead = (
            (
                "The attacker has the record of one patient and asks whether a hospital trained on it. The "
                "test is simple: does the update point in the direction of the patient's own gradient? "
                f"In exact updates of {smallest} patients, it scores a patient who took part higher than one "
                f"who did not in {percent(self.exact[smallest], 0)} of the comparisons."
            ),
            (
                "An insider who knows all other patients subtracts them, and an exact update then gives "
                "certainty. With noise, nobody exceeds an area of Phi(1 / (sqrt(2) sigma)) for one round "
                "with all patients, where sigma is the noise in clipping lengths. After T rounds, the noise "
                "counts as sigma / sqrt(T)."
            ),
        )
        batches = tuple(self.exact)
        rows = (
            ("exact", *(f"{self.exact[size]:.2f}" for size in batches)),
            *(
                (f"Tacit, epsilon {epsilon:g}", *(f"{areas[size]:.2f}" for size in batches))
                for epsilon, areas in self.private.items()
            ),
        )
        bounds = tuple(
            (
                f"{one.success.epsilon:g}",
                f"{one.sigma:.3g}",
                f"{one.area:.3f}",
                *(f"{self.over_rounds[one.success.epsilon][rounds]:.4f}" for rounds in _ROUNDS),
            )
            for one in self.insiders
        )
        rounds = tuple(f"bound, {rounds} round{'s' * (rounds > 1)}" for rounds in _ROUNDS)
        header = ("epsilon", "noise", "measured area", *rounds)
        tables = (
            ReportTable(
                "the simple test, area under the curve",
                ("patients in the update", *(f"{size}" for size in batches)),
                rows,
            ),
            curve_table(self.points, "an attacker who knows all other patients, against Tacit"),
            ReportTable("the same attacker, area under the curve", header, bounds),
        )
        note = (
            f"The areas of the simple test are means of {self.runs} runs. Epsilon goes with delta "
            f"{float(DELTA):g}, for one round. Area 0.5 is blind guessing, 1 is certainty."
        )
        return Report("Update membership attack", lead, tables, (note,))

    @property
    def unprotected(self) -> str:
        """What the updates give away without Tacit, in a few words."""
        return "certain from one exact update, for an attacker who knows the other patients"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success of the insider against Tacit, in the order of `epsilons`."""
        return tuple(one.success for one in self.insiders)

    def figures(self) -> tuple[Figure, ...]:
        """Return the areas of the simple test, and the insider's with its bound."""
        from tacit.explain import update_areas

        insiders = [(one.success.epsilon, one.area, one.bound) for one in self.insiders]
        return (update_areas(self.exact, self.private, insiders),)


def update_membership(
    batches: Iterable[SupportsIndex] = (8, 32, 128),
    *,
    hidden: SupportsIndex = 64,
    pictures: npt.ArrayLike | None = None,
    classes: npt.ArrayLike | None = None,
    epsilons: Iterable[Number] = (1, 8),
    runs: SupportsIndex = 20,
    trials: int = 1000,
) -> UpdateMembership:
    """Decide from one update of a network whether a patient took part in it.

    The simple test is the inner product of the update with the patient's own gradient. The insider also knows
    all other patients. Against Tacit, each gradient is clipped to length 1 on a grid of whole numbers, and
    the sum gets discrete Gaussian noise; the insider's area is then at most Phi(1 / (sqrt(2) sigma)), and
    reaches it for a patient whose gradient is clipped.

    Parameters
    ----------
    batches
        The numbers of patients in one update, at most 200.
    hidden
        The number of hidden units, from 8 to 1,024.
    pictures, classes
        The patients: one line of pixels from 0 to 1 each, and the class of each. By default 1,200 patients
        who do not exist.
    epsilons
        The costs of one update, with delta 1e-5.
    runs
        How often the simple test is repeated, with other patients and weights.
    trials
        The number of trials of the insider in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.update_membership([8], epsilons=[1], runs=5, trials=100)
    >>> attack.exact[8] > 0.6, round(attack.insiders[0].bound, 3)
    (True, 0.569)
    """
    promised, number = read_epsilons(epsilons), read_trials(trials)
    batch_sizes = Listed("numbers of patients", "(8, 32, 128)", each=Integer(1, 200))
    sizes = sorted(set(batch_sizes.read("batches", batches)))
    units = Integer(8, 1024, instead=64).read("hidden", hidden)
    repeats = Integer(1, 1000, instead=20).read("runs", runs)
    scans = Scans.of(pictures, classes)
    steps = on_grid(
        ScanNetwork.honest(scans, units, _MEMBERSHIP_STREAM).gradients(
            scans.pick(sizes[-1], _MEMBERSHIP_STREAM)
        )
    )
    insiders, private, over = [], {}, {}
    for epsilon in promised:
        scores, noise = attack_as_insider(epsilon, steps[1:].sum(axis=0), steps[0], number)
        insiders.append(scores)
        private[float(epsilon)] = _areas(scans, units, sizes, repeats, noise)
        over[float(epsilon)] = {rounds: _bound(scores.sigma, rounds) for rounds in _ROUNDS}
    exact = _areas(scans, units, sizes, repeats, None)
    return UpdateMembership(exact, private, tuple(insiders), over, repeats)


def _bound(sigma: float, rounds: int) -> float:
    from scipy.special import ndtr

    return float(ndtr((rounds / 2) ** 0.5 / sigma))


def _areas(
    scans: Scans, hidden: int, sizes: list[int], runs: int, noise: DiscreteGaussian | None
) -> dict[int, float]:
    """Return the area of the simple test for each number of patients, averaged over the runs.

    Each patient is the target once: in one world the update has all patients, in the other all but the
    target. The attacker knows the target's gradient, and the noise of each update is drawn afresh.
    """
    areas_by_size: dict[int, list[float]] = {size: [] for size in sizes}
    for run in range(runs):
        network = ScanNetwork.honest(scans, hidden, _MEMBERSHIP_STREAM + 10 * run)
        for size in sizes:
            gradients = network.gradients(scans.pick(size, _MEMBERSHIP_STREAM + 10 * run + 5))
            sent = gradients if noise is None else on_grid(gradients)
            total = np.tile(sent.sum(axis=0), (size, 1))
            directions = gradients / np.linalg.norm(gradients, axis=1, keepdims=True)
            worlds = []
            for update in (total, total - sent):
                releases = (
                    [update]
                    if noise is None
                    else [np.asarray(noise.release(update)) for _ in range(max(1, _RELEASES // size))]
                )
                worlds.append(np.concatenate([np.einsum("ij,ij->i", each, directions) for each in releases]))
            areas_by_size[size].append(area(*worlds))
    return {size: float(np.mean(areas)) for size, areas in areas_by_size.items()}


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class UpdateInversion(Drawn, Reportable):
    """How many pictures of patients come back out of one update of a network.

    Attributes
    ----------
    hidden, runs
        The number of hidden units, and how often each attack was repeated.
    exact, clipped
        The share of patients whose picture is recovered, for the weights of an honest server and for trap
        weights, by the number of patients in the update: exact updates, and updates whose gradients were
        clipped to length 1 without noise.
    private
        The same for updates with noise, for each epsilon.
    insiders
        What an attacker who knows all other patients achieves against the noise, with the bounds.
    rows
        Pictures: the patients, then the closest recovered pictures from each kind of update.
    """

    hidden: int
    runs: int
    exact: dict[str, dict[int, float]]
    clipped: dict[str, dict[int, float]]
    private: dict[float, dict[str, dict[int, float]]]
    insiders: tuple[InsiderScores, ...]
    rows: dict[str, _Reals]

    def report(self) -> Report:
        """Return the facts to show."""
        largest = max(self.exact["honest"])
        lead = (
            (
                "A hospital trains a network on its patients and sends only the update of the weights. The "
                "update contains the pictures: where one patient alone activates a unit, the gradient of the "
                "unit's weights is a multiple of the picture. A dishonest server chooses weights that "
                f"sort the patients, and recovers {percent(self.exact['trap'][largest], 0)} of {largest} "
                "patients from one update."
            ),
            (
                "Clipping without noise protects nobody, because it only scales the multiple. Noise does "
                "protect them. The zeros below are for this attack; the bound holds for every attacker."
            ),
        )
        batches = tuple(self.exact["honest"])
        rows = [
            (f"{name}, {server} weights", *(percent(shares[server][size], 0) for size in batches))
            for name, shares in (
                ("exact", self.exact),
                ("clipped, no noise", self.clipped),
                *((f"Tacit, epsilon {epsilon:g}", shares) for epsilon, shares in self.private.items()),
            )
            for server in _SERVERS
        ]
        header = ("patients in the update", *(f"{size}" for size in batches))
        bounds = tuple(
            (f"{one.success.epsilon:g}", f"{one.sigma:.3g}", f"{one.area:.3f}", f"{one.bound:.4f}")
            for one in self.insiders
        )
        tables = (
            ReportTable(f"pictures recovered to {_CLOSE:g} in every pixel", header, tuple(rows)),
            curve_table(self.points, "an attacker who knows all other patients, against Tacit"),
            ReportTable("the same attacker, area under the curve", _AREA_HEADER, bounds),
        )
        note = (
            f"Each share is the mean of {self.runs} runs. Epsilon goes with delta {float(DELTA):g}, for one "
            "update of all patients. Area 0.5 is blind guessing, 1 is certainty; without noise it is 1."
        )
        return Report("Update inversion attack", lead, tables, (note,))

    @property
    def unprotected(self) -> str:
        """What the updates give away without Tacit, in a few words."""
        largest = max(self.exact["trap"])
        return f"{percent(self.exact['trap'][largest], 0)} of {largest} pictures recovered from one update"

    @property
    def points(self) -> tuple[Success, ...]:
        """The success of the insider against Tacit, in the order of `epsilons`."""
        return tuple(one.success for one in self.insiders)

    def figures(self) -> tuple[Figure, ...]:
        """Return patients, and the closest pictures that the attacker recovers from each kind of update."""
        from tacit.explain import recovered_pictures

        return (recovered_pictures(self.rows),)

    def to_dict(self) -> dict[str, object]:
        """Return the figures as plain data, ready for JSON, without the pictures themselves."""
        return {name: value for name, value in Reportable.to_dict(self).items() if name != "rows"}


def update_inversion(
    batches: Iterable[SupportsIndex] = (1, 2, 4, 8, 16, 32),
    *,
    hidden: SupportsIndex = 256,
    pictures: npt.ArrayLike | None = None,
    classes: npt.ArrayLike | None = None,
    epsilons: Iterable[Number] = (1, 8),
    runs: SupportsIndex = 10,
    trials: int = 500,
) -> UpdateInversion:
    """Recover the pictures of patients from one update of a network with two layers.

    In the first layer, the gradient of a unit's weights divided by that of its bias is the picture of a
    patient who alone activates the unit (Phong and others 2018). With trap weights, all units measure the
    same brightness at different thresholds, and differences of units isolate patients (Fowl and others 2022).
    Against Tacit, each gradient is clipped to length 1 on a grid of whole numbers, and the sum gets discrete
    Gaussian noise.

    Parameters
    ----------
    batches
        The numbers of patients in one update, at most 64.
    hidden
        The number of hidden units, from 8 to 1,024.
    pictures, classes
        The patients: one line of pixels from 0 to 1 each, and the class of each. By default 1,200 patients
        who do not exist.
    epsilons
        The costs of one update, with delta 1e-5.
    runs
        How often each attack is repeated, with other patients and weights.
    trials
        The number of trials of the insider in each world, for each epsilon.

    Examples
    --------
    >>> from tacit.audit import lab
    >>> attack = lab.update_inversion([4], epsilons=[8], runs=3, trials=100)
    >>> attack.exact["trap"][4] > 0.9, attack.clipped["trap"][4] > 0.9, attack.private[8.0]["trap"][4]
    (True, True, 0.0)
    """
    promised, number = read_epsilons(epsilons), read_trials(trials)
    batch_sizes = Listed("numbers of patients", "(1, 8, 32)", each=Integer(1, 64))
    sizes = sorted(set(batch_sizes.read("batches", batches)))
    units = Integer(8, 1024, instead=256).read("hidden", hidden)
    repeats = Integer(1, 1000, instead=10).read("runs", runs)
    scans = Scans.of(pictures, classes)
    target = on_grid(
        ScanNetwork.honest(scans, units, _INVERSION_STREAM).gradients(
            scans.pick(sizes[-1], _INVERSION_STREAM)
        )
    )
    insiders, noises = [], []
    for epsilon in promised:
        scores, noise = attack_as_insider(epsilon, target[1:].sum(axis=0), target[0], number)
        insiders.append(scores)
        noises.append(noise)
    kinds: list[DiscreteGaussian | str] = ["exact", "clipped", *noises]
    shares = [
        {
            server: {size: _mean(scans, server, units, size, repeats, kind) for size in sizes}
            for server in _SERVERS
        }
        for kind in kinds
    ]
    return UpdateInversion(
        hidden=units,
        runs=repeats,
        exact=shares[0],
        clipped=shares[1],
        private={float(epsilon): share for epsilon, share in zip(promised, shares[2:], strict=True)},
        insiders=tuple(insiders),
        rows=_rows(scans, units, noises[-1], f"Tacit, epsilon {float(promised[-1]):g}"),
    )


def _update(network: ScanNetwork, some: Scans, noise: DiscreteGaussian | str) -> _Reals:
    """Return what the hospital sends."""
    gradients = network.gradients(some)
    if not isinstance(noise, str):
        return np.asarray(noise.release(on_grid(gradients).sum(axis=0)), dtype=np.float64)
    total: _Reals = (gradients if noise == "exact" else clipped(gradients)).sum(axis=0)
    return total


def _closest(network: ScanNetwork, some: Scans, noise: DiscreteGaussian | str) -> tuple[_Reals, _Reals]:
    """Return the closest candidate for each patient, and its largest difference in a pixel."""
    candidates = network.candidates(_update(network, some, noise))
    if not len(candidates):
        return np.zeros_like(some.pictures), np.ones(len(some.pictures))
    distances = np.stack([np.abs(candidates - picture).max(axis=1) for picture in some.pictures])
    best = distances.argmin(axis=1)
    return candidates[best], distances[np.arange(len(best)), best]


def _mean(
    scans: Scans, server: str, hidden: int, size: int, runs: int, noise: DiscreteGaussian | str
) -> float:
    """Return the share of patients recovered, averaged over the runs."""
    shares = []
    for run in range(runs):
        network = getattr(ScanNetwork, server)(scans, hidden, _INVERSION_STREAM + 10 * run)
        _, distances = _closest(network, scans.pick(size, _INVERSION_STREAM + 10 * run + 5), noise)
        shares.append(float((distances <= _CLOSE).mean()))
    return float(np.mean(shares))


def _rows(scans: Scans, hidden: int, noise: DiscreteGaussian, name: str) -> dict[str, _Reals]:
    """Return the pictures to draw: patients, and what comes back from each kind of update."""
    some = scans.pick(_SHOWN, _INVERSION_STREAM + 7)
    rows = {"patients": some.pictures}
    kinds: dict[str, tuple[str, DiscreteGaussian | str]] = {
        "exact update": ("honest", "exact"),
        "exact update, trap weights": ("trap", "exact"),
        "clipped without noise, trap": ("trap", "clipped"),
        f"{name}, trap": ("trap", noise),
    }
    for title, (server, sent) in kinds.items():
        network = getattr(ScanNetwork, server)(scans, hidden, _INVERSION_STREAM)
        rows[title] = np.clip(_closest(network, some, sent)[0], 0, 1)
    return rows
