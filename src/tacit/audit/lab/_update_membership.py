"""The attack lab on updates: whether a patient took part shows in the update that a hospital sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, SupportsIndex

import numpy as np

from tacit.audit.lab._success import curve_table, read_epsilons, read_trials
from tacit.audit.lab._updates import (
    DELTA,
    InsiderScores,
    ScanNetwork,
    Scans,
    area,
    attack_as_insider,
    on_grid,
)
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.report import Report, Reportable, ReportTable, percent
from tacit.show import Drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from tacit.audit.lab._success import Success
    from tacit.exact import Number
    from tacit.mechanisms import DiscreteGaussian
    from tacit.show import Figure

_STREAM: Final = 4000
_RELEASES: Final = 128  # noisy updates in each world of a run
_ROUNDS: Final = (1, 10, 100)


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
        least = min(self.exact)
        lead = (
            (
                "The attacker has the record of one patient and asks whether a hospital trained on it. The "
                "test is simple: does the update point in the direction of the patient's own gradient? "
                f"In exact updates of {least} patients, it scores a patient who took part higher than one "
                f"who did not in {percent(self.exact[least], 0)} of the comparisons."
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
    sizes = sorted({count("batches", size, zero=False) for size in batches})
    units, repeats = count("hidden", hidden), count("runs", runs, zero=False)
    if not sizes or sizes[-1] > 200 or not 8 <= units <= 1024 or repeats > 1000:
        raise bad_parameter(
            "batches",
            "at most 200 patients, with 8 to 1,024 hidden units and at most 1,000 runs",
            (sizes, units, repeats),
            fix=Set(batches=(8, 32, 128), hidden=64, runs=20),
        )
    scans = Scans.of(pictures, classes)
    steps = on_grid(ScanNetwork.honest(scans, units, _STREAM).gradients(scans.pick(sizes[-1], _STREAM)))
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
    found: dict[int, list[float]] = {size: [] for size in sizes}
    for run in range(runs):
        network = ScanNetwork.honest(scans, hidden, _STREAM + 10 * run)
        for size in sizes:
            gradients = network.gradients(scans.pick(size, _STREAM + 10 * run + 5))
            sent = gradients if noise is None else on_grid(gradients)
            total = np.tile(sent.sum(axis=0), (size, 1))
            own = gradients / np.linalg.norm(gradients, axis=1, keepdims=True)
            worlds = []
            for update in (total, total - sent):
                releases = (
                    [update]
                    if noise is None
                    else [np.asarray(noise.release(update)) for _ in range(max(1, _RELEASES // size))]
                )
                worlds.append(np.concatenate([np.einsum("ij,ij->i", each, own) for each in releases]))
            found[size].append(area(*worlds))
    return {size: float(np.mean(areas)) for size, areas in found.items()}
