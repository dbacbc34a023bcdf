"""What the tasks of a cohort share: the number of people before the sums, and a file that may be gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tacit.genomes._cohort import missing_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core import JSON
    from tacit.errors import TacitError
    from tacit.genomes._cohort import Cohort
    from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace

__all__ = ["CohortTask"]


class CohortTask:
    """Sums over the people of a cohort; ``counting`` is the noise of their number, where it is private."""

    __slots__ = ()

    #: What is summed, for the certificate: one name for each noise of `sum_noises`.
    statistics: ClassVar[tuple[str, ...]]
    cohort: Cohort
    counting: DiscreteGaussian | DiscreteLaplace | None
    adding: DiscreteGaussian | DiscreteLaplace

    @property
    def sum_noises(self) -> tuple[DiscreteGaussian | DiscreteLaplace, ...]:
        """The noise of each kind of sums."""
        return (self.adding,)

    @property
    def mechanisms(self) -> Sequence[Any]:
        """The noise of the numbers of people, where they are private, and of the sums."""
        return [*([self.counting] if self.counting else []), *self.sum_noises]

    @property
    def labels(self) -> Sequence[Mapping[str, JSON]]:
        """What the certificate says beside each mechanism."""
        counted = ("number of people",) if self.counting else ()
        return [{"statistic": name} for name in (*counted, *self.statistics)]

    def unavailable(self) -> TacitError | None:
        """Refuse a draw whose file is gone."""
        return missing_source(self.cohort._source)  # noqa: SLF001 - the parts of a cohort
