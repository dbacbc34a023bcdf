"""The attack lab on updates: the pictures of patients come back out of what a hospital sends."""

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
    attack_as_insider,
    clipped,
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

    _Reals = npt.NDArray[np.float64]

_CLOSE: Final = 0.02  # the largest difference of a pixel in a picture that counts as recovered
_SHOWN: Final = 8  # patients in the picture
_SERVERS: Final = ("honest", "trap")


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
        most = max(self.exact["honest"])
        lead = (
            (
                "A hospital trains a network on its patients and sends only the update of the weights. The "
                "update contains the pictures: where one patient alone activates a unit, the gradient of the "
                "unit's weights is a multiple of the picture. A dishonest server chooses weights that "
                f"sort the patients, and recovers {percent(self.exact['trap'][most], 0)} of {most} patients "
                "from one update."
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
        most = max(self.exact["trap"])
        return f"{percent(self.exact['trap'][most], 0)} of {most} pictures recovered from one update"

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


_AREA_HEADER = ("epsilon", "noise in clipping lengths", "measured area", "largest area of any attacker")


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
    sizes = sorted({count("batches", size, zero=False) for size in batches})
    units, repeats = count("hidden", hidden), count("runs", runs, zero=False)
    if not sizes or sizes[-1] > 64 or not 8 <= units <= 1024 or repeats > 1000:
        raise bad_parameter(
            "batches",
            "at most 64 patients, with 8 to 1,024 hidden units and at most 1,000 runs",
            (sizes, units, repeats),
            fix=Set(batches=(1, 8, 32), hidden=256, runs=10),
        )
    scans = Scans.of(pictures, classes)
    target = on_grid(ScanNetwork.honest(scans, units, _STREAM).gradients(scans.pick(sizes[-1], _STREAM)))
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


_STREAM: Final = 1000  # the first of the hash's streams for weights and patients


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
    apart = np.stack([np.abs(candidates - picture).max(axis=1) for picture in some.pictures])
    best = apart.argmin(axis=1)
    return candidates[best], apart[np.arange(len(best)), best]


def _mean(
    scans: Scans, server: str, hidden: int, size: int, runs: int, noise: DiscreteGaussian | str
) -> float:
    """Return the share of patients recovered, averaged over the runs."""
    shares = []
    for run in range(runs):
        network = getattr(ScanNetwork, server)(scans, hidden, _STREAM + 10 * run)
        _, apart = _closest(network, scans.pick(size, _STREAM + 10 * run + 5), noise)
        shares.append(float((apart <= _CLOSE).mean()))
    return float(np.mean(shares))


def _rows(scans: Scans, hidden: int, noise: DiscreteGaussian, name: str) -> dict[str, _Reals]:
    """Return the pictures to draw: patients, and what comes back from each kind of update."""
    some = scans.pick(_SHOWN, _STREAM + 7)
    rows = {"patients": some.pictures}
    kinds: dict[str, tuple[str, DiscreteGaussian | str]] = {
        "exact update": ("honest", "exact"),
        "exact update, trap weights": ("trap", "exact"),
        "clipped without noise, trap": ("trap", "clipped"),
        f"{name}, trap": ("trap", noise),
    }
    for title, (server, sent) in kinds.items():
        network = getattr(ScanNetwork, server)(scans, hidden, _STREAM)
        rows[title] = np.clip(_closest(network, some, sent)[0], 0, 1)
    return rows
