"""Updates of a small network, for the attack lab: what a hospital sends after one step on its patients."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from tacit.accounting import Cost
from tacit.audit.lab._people import hashed_uniform
from tacit.audit.lab._success import Success, from_trials
from tacit.errors import bad_parameter
from tacit.fixes import Set

if TYPE_CHECKING:
    import numpy.typing as npt

    from tacit.mechanisms import DiscreteGaussian

    _Reals = npt.NDArray[np.float64]
    _Whole = npt.NDArray[np.int64]

#: The delta that goes with every epsilon of the attacks on updates.
DELTA: Final = Fraction(1, 10**5)
#: Whole grid steps in the clipping length: gradients are clipped to length 1.
GRID: Final = 2**20
_SIDE: Final = 8
_CLASSES: Final = 10


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
        made = cls(np.asarray(pictures, dtype=np.float64), np.asarray(classes, dtype=np.int64))
        small = made.pictures.ndim != 2 or len(made.pictures) < 300 or made.pictures.shape[1] > 4096
        if small or made.classes.shape != (len(made.pictures),):
            raise bad_parameter(
                "pictures",
                "at least 300 lines of at most 4,096 pixels, with one class each",
                (made.pictures.shape, made.classes.shape),
                fix=Set(pictures=None, classes=None),
            )
        if not (made.pictures.min() >= 0 and made.pictures.max() <= 1) or made.classes.min() < 0:
            raise bad_parameter(
                "pictures", "between 0 and 1, with classes from 0 on", "other values", fix=Set(pictures=None)
            )
        return made

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
        found: _Reals = weights[fired] / biases[fired, None]
        return found


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
    said = (world > shift / 2 for world in worlds)
    sigma = float(noise.sigma) / GRID
    return InsiderScores(
        success=from_trials(epsilon, *said, bound=cost.advantage),
        sigma=sigma,
        area=area(*worlds),
        bound=float(ndtr(1 / (2**0.5 * sigma))),
    ), noise


def _portions(trials: int, width: int) -> list[int]:
    """Split the trials so that no portion has more than two million noisy numbers."""
    most = max(1, 2_000_000 // width)
    return [min(most, trials - first) for first in range(0, trials, most)]


def area(members: _Reals, outsiders: _Reals) -> float:
    """Return the area under the curve (AUC): how often a member's score is above an outsider's."""
    ranks = np.searchsorted(np.sort(outsiders), members, side="left")
    ties = np.searchsorted(np.sort(outsiders), members, side="right") - ranks
    return float((ranks + ties / 2).mean() / len(outsiders))


def _outputs(scans: Scans) -> int:
    return max(_CLASSES, int(scans.classes.max()) + 1)


def _normal(shape: tuple[int, ...], stream: int) -> _Reals:
    from scipy.special import ndtri

    drawn: _Reals = ndtri(hashed_uniform(np.arange(int(np.prod(shape))), stream) * (1 - 1e-9) + 5e-10)
    return drawn.reshape(shape)
