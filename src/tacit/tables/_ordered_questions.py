"""What can be asked of ordered columns and of trees of values; rows and datasets inherit it."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from tacit.tables._questions import HIERARCHY, PREFIXES, RANGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core import Question
    from tacit.exact import Number
    from tacit.tables._hierarchy_counts import HierarchyCounts
    from tacit.tables._ordered_counts import OrderedCounts
    from tacit.tables._public_tree import TreeGiven
    from tacit.tables._rows import Rows


class OrderedQuestions:
    """Questions about ranges, running totals and trees."""

    __slots__ = ()

    @abstractmethod
    def _counted(self) -> Rows:
        """Return the rows that are counted."""

    def ranges(
        self,
        column: str,
        *,
        bins: int | Sequence[object] | None = None,
        values: Sequence[object] | None = None,
        ranges: Sequence[tuple[object, object]] | Mapping[tuple[object, object], Number] | None = None,
        by: str | None = None,
        keys: Sequence[object] | None = None,
    ) -> Question[OrderedCounts]:
        """Ask for all ranges of an ordered column at once: any range of its cells, with an interval.

        Guarantee
        ---------
        One plan, one charge. The sums that are measured are chosen for the asked ranges from public facts:
        with Gaussian noise their mean error is within 0.02 % of the smallest that any linear measurements
        can have, which the plan certifies. Ranges are added up from the same measurements, so they agree.

        Parameters
        ----------
        column
            A number or a date with ``bins``, or a column of listed values.
        bins
            How many equally wide cells between the declared bounds, or the cuts themselves; at most 1,024.
        values
            Instead of bins: the public values, in their order. Needed for text.
        ranges
            The ranges that matter, as pairs of cuts; or a mapping from pairs to how much each matters. By
            default all ranges matter alike.
        by, keys
            One column of public keys: each of its groups gets cells of its own.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id",
        ...                     bounds={"length_of_stay": (0, 30)}, budget=tc.Budget(rho=1, delta=1e-6))
        >>> release = visits.ranges("length_of_stay", bins=30).plan(rho=0.5).release()
        >>> answer = release.range(7, 14)
        >>> answer.low <= answer.value <= answer.high
        True
        """
        return RANGES.of(self._counted(), column, bins=bins, values=values, ranges=ranges, by=by, keys=keys)

    def prefixes(
        self,
        column: str,
        *,
        bins: int | Sequence[object] | None = None,
        values: Sequence[object] | None = None,
        by: str | None = None,
        keys: Sequence[object] | None = None,
    ) -> Question[OrderedCounts]:
        """Ask for the distribution of an ordered column: running totals, and quantiles read off them.

        Guarantee
        ---------
        As with `ranges`, but running totals matter, not all ranges: their error is smaller.

        Parameters
        ----------
        column, bins, values, by, keys
            As in `ranges`.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id",
        ...                     bounds={"length_of_stay": (0, 30)}, budget=tc.Budget(epsilon=1))
        >>> release = visits.prefixes("length_of_stay", bins=30).plan(epsilon=1).release()
        >>> median = release.quantile(0.5)
        >>> median.low <= median.value <= median.high
        True
        """
        return PREFIXES.of(self._counted(), column, bins=bins, values=values, by=by, keys=keys)

    def hierarchy(
        self,
        levels: Sequence[str],
        *,
        tree: TreeGiven,
        weights: Mapping[str, Number] | None = None,
    ) -> Question[HierarchyCounts]:
        """Ask for the counts of a public tree of areas or codes: all levels at once, and they add up.

        Guarantee
        ---------
        One plan, one charge. Every level is measured, and least squares up and down the tree uses all of
        them: the districts of a region add up to the region, and each node has an interval.

        Parameters
        ----------
        levels
            The names of the levels from the top down, such as country, region, district. The last one is the
            column of the rows; the tree says in what each of its values lies.
        tree
            Nested mappings that end in lists (``{"North": {"Coast": ["A", "B"]}}``), or a public table: a
            data frame or a list of dictionaries with one column for each level.
        weights
            How much the error of each level matters; ``"(all)"`` is the level of all rows together. By
            default the largest error of all levels is made as small as it gets.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> tree = {"public": ["Ahorn", "Birke", "Eiche"], "private": ["Buche", "Erle"]}
        >>> release = visits.hierarchy(["owner", "hospital"], tree=tree).plan(epsilon=1).release()
        >>> [line["owner"] for line in release.level("owner")]
        ['public', 'private']
        """
        return HIERARCHY.of(self._counted(), levels, tree=tree, weights=weights)
