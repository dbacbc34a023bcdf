"""What can be asked of rows beyond one table of answers: cross tables, ordered columns, trees of values.

Rows and datasets inherit it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal

from tacit.core import question_of
from tacit.tables.questions._question_kinds import CROSSTABS, HIERARCHY, PREFIXES, RANGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core import Question
    from tacit.exact import Number
    from tacit.tables.questions._rows import Rows
    from tacit.tables.workloads._axes import BinsGiven, TreeGiven
    from tacit.tables.workloads._cross_tables import CrossTables, TableName
    from tacit.tables.workloads._hierarchy import HierarchyCounts
    from tacit.tables.workloads._ordered_counts import OrderedCounts


class WorkloadQuestions:
    """Questions about cross tables, ranges, running totals and trees, and those of other rooms about rows."""

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

    def _asked_of(self, name: str, *arguments: Any, **options: Any) -> Question[Any]:
        """Ask a question of the room that registered it for tables."""
        kind: Any = question_of("table", name)
        question: Question[Any] = kind.of(self._counted(), *arguments, **options)
        return question

    def crosstabs(
        self,
        columns: Sequence[str],
        up_to: int = 2,
        *,
        tables: Sequence[TableName] | None = None,
        bins: BinsGiven = None,
        keys: Mapping[str, Sequence[object]] | None = None,
        other: Sequence[str] = (),
        missing: bool = True,
        weights: Mapping[TableName, Number] | None = None,
        aim: Literal["largest", "sum"] = "largest",
    ) -> Question[CrossTables]:
        """Ask for many tables of these columns at once, planned together; all of them agree.

        Guarantee: like every plan, it states its cost and the error of every table before anything is
        charged. The noise is chosen so that the widest cell is as narrow as it can be for the cost.

        Parameters
        ----------
        columns
            Columns with public values, or numbers and dates with `bins`.
        up_to
            All tables of one to so many columns.
        tables
            Instead of `up_to`: exactly these tables, each a tuple of names.
        bins
            For numbers: into how many equal cells their bounds are cut, or the cuts; for dates the cuts.
        keys
            Public values by column; by default those declared with the dataset.
        other
            Columns that get a place for all values that are not listed.
        missing
            Whether missing values get a place, in columns that can have them.
        weights
            How much the variance of a table counts, 1 where nothing is said: ``{("age", "sex"): 4}``.
        aim
            ``"largest"``: the largest (weighted) variance of a cell is least. ``"sum"``: the sum over all
            cells is; small tables then have the widest cells.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", limits={"rows": 1},
        ...                     budget=tc.Budget(epsilon=2, delta=1e-6), bounds={"age": (0, 100)},
        ...                     keys={"hospital": tc.tables.EXAMPLE_HOSPITALS})
        >>> question = visits.crosstabs(["age", "hospital"], bins={"age": 4}, missing=False)
        >>> release = question.plan(epsilon=1, delta=1e-6).release()
        >>> table = release.tables[("hospital", "age")]
        >>> len(table) == 4 * len(tc.tables.EXAMPLE_HOSPITALS)
        True
        >>> total = sum(table["n"].value)
        >>> abs(total - release.total.value) < 1e-6  # all tables agree
        True
        """
        return CROSSTABS.of(
            self._counted(), columns, up_to, tables=tables, bins=bins, keys=keys, other=other,
            missing=missing, weights=weights, aim=aim,
        )  # fmt: skip

    def regress(
        self,
        outcome: str,
        *,
        on: Sequence[str],
        kind: str = "linear",
        bounds: Mapping[str, tuple[Number, Number]] | None = None,
        bins: BinsGiven = None,
        keys: Mapping[str, Sequence[object]] | None = None,
    ) -> Question[Any]:
        """Ask for a regression of a column on others; `tacit.inference.regress` explains the parameters.

        Intervals and p-values cover the noise and the chance in who was included. Each unit needs one row.

        Examples
        --------
        ``people.regress("sbp", on=["age", "bmi"]).plan(epsilon=1)``
        """
        return self._asked_of("regress", outcome, on=on, kind=kind, bounds=bounds, bins=bins, keys=keys)

    def survival(
        self,
        *,
        time: str,
        event: str,
        bins: Sequence[Number],
        by: str | None = None,
        keys: Sequence[object] | None = None,
    ) -> Question[Any]:
        """Ask for survival curves on public time bins; `tacit.inference.survival` explains the parameters.

        Intervals and p-values cover the noise and the chance in who was included. Each unit needs one row.

        Examples
        --------
        ``people.survival(time="week", event="arrest", bins=[0, 13, 26, 39, 52], by="fin").plan(epsilon=1)``
        """
        return self._asked_of("survival", time=time, event=event, bins=bins, by=by, keys=keys)

    def synthesize(
        self,
        columns: Sequence[str],
        *,
        bins: BinsGiven = None,
        keys: Mapping[str, Sequence[object]] | None = None,
        other: Sequence[str] = (),
        keep: Sequence[Sequence[str]] = (),
        never: Sequence[Mapping[str, object]] = (),
        method: Literal["auto", "aim", "mst", "tables"] = "auto",
        up_to: int | None = None,
        size: int = 200_000,
    ) -> Question[Any]:
        """Ask for invented rows that agree with measured tables of these columns.

        Guarantee: the plan's rho for each unit, whatever was measured (docs/proofs/synth.md). The release
        holds noisy tables; rows are a free view of it. A unit with several rows needs a limit on rows, or
        one row after `per_unit`.

        Parameters
        ----------
        columns
            The columns. All their values must be public: keys, bounds with bins, or booleans.
        bins
            Of numbers: how many equally wide cells, or the cuts; of dates the cuts. Values inside a cell are
            invented.
        keys
            Public values by column; by default those declared with the dataset.
        other
            Columns that get one more place for all values that are not listed.
        keep
            Tables that are measured first, with a fifth of the budget reserved for them.
        never
            Combinations that cannot be, such as ``{"sex": "M", "pregnant": True}``: public facts.
        method
            ``"aim"`` chooses tables in rounds, ``"mst"`` chooses a tree of pairs, ``"tables"`` measures all
            tables of ``up_to`` columns; by default AIM, or all tables where few are wanted.
        up_to
            How many columns the wanted tables have: 3, or 2 for ``"tables"``.
        size
            The most cells of the model.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(
        ...     tc.tables.example_visits(), unit="patient_id", bounds={"age": (0, 100)},
        ...     keys={"hospital": tc.tables.EXAMPLE_HOSPITALS}, budget=tc.Budget(epsilon=3, delta=1e-6),
        ... )
        >>> plan = visits.synthesize(["hospital", "age"], bins={"age": 5}).plan(epsilon=2, delta=1e-6)
        >>> release = plan.release()
        >>> rows = release.to_pandas(rows=100)
        >>> rows.shape, rows.equals(release.to_pandas(rows=100))
        ((100, 2), True)
        """
        return self._asked_of(
            "synthesize", columns, bins=bins, keys=keys, other=other, keep=keep, never=never,
            method=method, up_to=up_to, size=size,
        )  # fmt: skip
