"""A year's plan for a budget: which reports fit, at which price, and what the others would take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget, Filter
from tacit.core._batch_split import DEFAULT_LEVEL
from tacit.core._budget_need import charged_all, needed_budget
from tacit.core._report_prices import plans_of
from tacit.core._schedule_page import remedy_of, schedule_figure, schedule_page, what_it_takes
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Choose, Code, Set
from tacit.parameters import Instance, Listed
from tacit.report import Reportable
from tacit.show import Drawn, Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core._dataset import Dataset
    from tacit.core._plan import Plan
    from tacit.core._schedule_page import Remedy
    from tacit.report import Report

_FIELDS = ("name", "question", "within", "epsilon", "rho", "delta", "confidence", "size", "times", "priority")
_MOST_TIMES = 1_000
_BUDGET = Instance(Budget, "tc.Budget(epsilon=3)", "a Budget or a dataset")
_REPORT = "{'name': 'stays', 'question': q, 'within': 5, 'times': 12}"
_EXAMPLE = Code(f"tc.budget_plan([{_REPORT}], tc.Budget(3))")


def budget_plan(reports: Sequence[Mapping[str, Any]], budget: Budget | Dataset) -> BudgetSchedule:
    """Plan a year: which reports a budget can pay for, and what it would take to pay for the others.

    Guarantee
    ---------
    Nothing is charged and no data is read. A schedule in which everything fits is admitted by the ledger, in
    any order: the same filter adds up the same charges.

    Parameters
    ----------
    reports
        One mapping for each report:

        - ``name``: what it is called;
        - ``question``: a question (with a method ``plan``), or a function that makes a plan from
          ``epsilon=`` or ``rho=``;
        - ``within``: the error that is good enough for every column; or ``epsilon`` or ``rho``: the price of
          one release; with ``delta`` where groups are not public;
        - ``confidence``: how often intervals cover the noise (default 0.95);
        - ``size``: a public guess of the number of rows in each group, which the error of a mean needs;
        - ``times``: how often the report is released from new data (default 1). The same question again on
          the same declared version of the data is free and does not count;
        - ``priority``: reports with a smaller number are paid for first (default: in the given order).
    budget
        The whole budget, or a dataset, whose account has what is left now. Accounts above it in the same
        ledger pay too and are counted; at a service, only your allotment is known.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=3))
    >>> year = tc.budget_plan(
    ...     [
    ...         {"name": "monthly", "question": visits.agg(n=tc.count()), "within": 150, "times": 12},
    ...         {"name": "yearly", "question": visits.agg(n=tc.count()), "epsilon": 1},
    ...     ],
    ...     visits,
    ... )
    >>> year.fits
    False
    >>> [(line.asked.name, line.fitting) for line in year.lines]
    [('monthly', 12), ('yearly', 0)]
    """
    listed = Listed("reports", f"[{_REPORT}]").read("reports", reports)
    asked = [AskedReport.read(one, place) for place, one in enumerate(listed, 1)]
    names = [one.name for one in asked]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise bad_parameter("name", "different for each report", twice, fix="rename one of them")
    states = _states_of(budget)
    ordered = sorted(asked, key=lambda one: one.priority)  # stable: as given where priorities are equal
    options = [plans_of(one, states[0]) for one in ordered]
    if not isinstance(budget, Budget):
        _check_dataset(ordered, options, budget)
    best = _best(ordered, options, states)
    wanted = [(line.plan.cost, line.asked.times) for line in best.lines]
    for place, state in enumerate(states[1:] if best.wanted_within else (), 1):  # one above has too little
        if not charged_all(state, wanted).within:
            return _best(ordered, options, [state, *states[:place], *states[place + 1 :]])
    return best


def _best(
    ordered: Sequence[AskedReport], options: Sequence[list[Plan[Any]]], states: Sequence[Filter]
) -> BudgetSchedule:
    """Return the schedule that pays for most: with noise of a pure epsilon, Gaussian, or of either kind."""
    tried = [
        _scheduled(
            [(one, plans[min(way, len(plans) - 1)]) for one, plans in zip(ordered, options, strict=True)],
            states[0],
            tuple(states[1:]),
        )
        for way in range(max(map(len, options)))
    ]
    enough = [made.needs for made in tried if made.needs is not None]
    return replace(min(tried, key=_rank), needs=min(enough, default=None))


@dataclass(frozen=True, slots=True)
class AskedReport:
    """A report as its author wants it: the question, the error or the price, how often, how important."""

    name: str
    question: Any
    within: Fraction | None
    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction
    confidence: Fraction
    times: int
    priority: Fraction
    size: int | None = None

    @classmethod
    def read(cls, given: Mapping[str, Any], place: int) -> AskedReport:
        """Read a report, or refuse with what is wrong in it."""
        given = Instance(Mapping, str(_EXAMPLE), "a mapping with a question in it").read("a report", given)
        for field in given:
            if field not in _FIELDS:
                raise TacitError(
                    "bad-parameter",
                    f"a report has no field {field!r}",
                    fix=Choose(_FIELDS, given=str(field)),
                )
        name, question = str(given.get("name", f"report {place}")), given.get("question")
        if not (callable(getattr(question, "plan", None)) or callable(question)):
            raise bad_parameter(
                f"the question of {name}", "one that has a method plan, or a function", question, fix=_EXAMPLE
            )
        goals = {goal: _number(given, goal, name) for goal in ("within", "epsilon", "rho")}
        if sum(value is not None for value in goals.values()) != 1:
            raise TacitError(
                "bad-parameter",
                f"the report {name} needs exactly one of within, epsilon and rho",
                why="an error or a price decides what one release costs",
                fix=Set(within=5),
            )
        delta = rational(f"the delta of {name}", given.get("delta", 0), zero=True)
        level = rational(f"the confidence of {name}", given.get("confidence", DEFAULT_LEVEL))
        if delta >= 1 or level >= 1:
            raise bad_parameter(
                f"delta and confidence of {name}", "below 1", f"{float(delta):g} and {float(level):g}",
                fix=Set(delta=1e-7, confidence=0.95),
            )  # fmt: skip
        times = count(f"times of {name}", given.get("times", 1), zero=False)
        if times > _MOST_TIMES:
            raise bad_parameter(
                f"times of {name}", f"at most {_MOST_TIMES:,}", times,
                why="a stream or a run releases very often for one charge", fix=Set(times=365),
            )  # fmt: skip
        size = None if given.get("size") is None else count(f"size of {name}", given["size"], zero=False)
        priority = rational(f"the priority of {name}", given.get("priority", 0), zero=True, negative=True)
        return cls(
            name, question, **goals, delta=delta, confidence=level, times=times, priority=priority, size=size
        )


def _number(given: Mapping[str, Any], field: str, name: str) -> Fraction | None:
    value: Number | None = given.get(field)
    return None if value is None else rational(f"{field} of {name}", value)


@dataclass(frozen=True, slots=True)
class PricedReport:
    """One line of a schedule.

    Parameters
    ----------
    asked
        The report.
    plan
        The plan of one release.
    fitting
        How many of its releases the budget pays for.
    cumulative
        The smallest budget, in the same measure as the given one, that pays for everything scheduled
        up to here.
    wanted
        The same for everything wanted up to here, whether it fits or not; None if no budget pays for it.
    """

    asked: AskedReport
    plan: Plan[Any]
    fitting: int
    cumulative: Fraction | None
    wanted: Fraction | None

    @property
    def fits(self) -> bool:
        """Whether the budget pays for every release."""
        return self.fitting == self.asked.times


@dataclass(frozen=True, slots=True, repr=False)
class BudgetSchedule(Drawn, Reportable):
    """What a budget can pay for: a line for each report, in the order of their priorities.

    Parameters
    ----------
    lines
        The reports, with their plans, and how many of their releases fit.
    state
        The budget, and what was spent of it before.
    needs
        The smallest epsilon (or rho) of a budget that pays for everything, with the noise that is best for
        it; None if a larger one is no help.
    above
        The other accounts that pay for the same releases, where the budget is that of an account.
    """

    lines: tuple[PricedReport, ...]
    state: Filter
    needs: Fraction | None
    above: tuple[Filter, ...] = ()

    @property
    def budget(self) -> Budget:
        """The whole budget."""
        return self.state.budget

    @property
    def fits(self) -> bool:
        """Whether the budget pays for everything."""
        return all(line.fits for line in self.lines)

    @property
    def wanted_within(self) -> bool:
        """Whether this budget alone pays for everything, whatever other accounts have left."""
        return charged_all(self.state, [(one.plan.cost, one.asked.times) for one in self.lines]).within

    @property
    def plans(self) -> dict[str, Plan[Any]]:
        """The plan of one release of each report, by name."""
        return {line.asked.name: line.plan for line in self.lines}

    @property
    def remedy(self) -> Remedy | None:
        """What would make everything fit, as data; None if it does."""
        return remedy_of(self)

    @property
    def advice(self) -> tuple[str, ...]:
        """What does not fit and what it would take, in sentences; empty if everything fits."""
        return what_it_takes(self)

    def report(self) -> Report:
        """Return the schedule as a page."""
        return schedule_page(self)

    def to_pandas(self) -> Any:
        """Return the schedule as a data frame, one line for each report (extra ``pandas``)."""
        from tacit.core._extras import needs

        needs("to_pandas", "pandas", "tacit[pandas]")
        import pandas as pd

        return pd.DataFrame(self.records())

    def records(self) -> list[dict[str, Any]]:
        """Return the schedule as plain data, one mapping for each report."""
        return [
            {
                "report": line.asked.name,
                "times": line.asked.times,
                **{f"{name}_each": float(line.plan.promised.get(name, 0)) or None
                   for name in ("epsilon", "delta", "rho")},
                "fitting": line.fitting,
                "fits": line.fits,
                "cumulative": None if line.cumulative is None else float(line.cumulative),
            }
            for line in self.lines
        ]  # fmt: skip

    def figures(self) -> tuple[Figure, ...]:
        """Return what each report takes, and what is left after it."""
        return (schedule_figure(self),)


def _states_of(budget: Any) -> list[Filter]:
    """Return the filter of a budget; of a dataset that of its account, and those of all accounts above."""
    ledger = getattr(budget, "_ledger", None)
    if ledger is None:
        return [Filter.start(_BUDGET.read("budget", budget))]
    account = ledger.account(budget.identity.name)
    found: list[Filter] = [account.filter]
    while getattr(account, "parent", None) is not None:  # a service shows the allotment alone
        account = ledger.account(account.parent)
        found.append(account.filter)
    return found


def _check_dataset(
    asked: Sequence[AskedReport], options: Sequence[list[Plan[Any]]], dataset: Dataset
) -> None:
    """Refuse a report about other data than the account pays for: another account would be charged."""
    mine, ledger = dataset.identity, dataset._ledger  # noqa: SLF001 - the core's own
    for one, plans in zip(asked, options, strict=True):
        members = [member for plan in plans for member in plan._members]  # noqa: SLF001
        if not any(
            (member.identity.name, member.identity.adjacency) == (mine.name, mine.adjacency)
            and (member.ledger is ledger or member.ledger == ledger)
            for member in members
        ):
            raise TacitError(
                "not-allowed",
                f"the report {one.name} does not ask {mine.name}, whose budget was given",
                why="each dataset pays from its own account",
                fix="plan the reports of each dataset by themselves, or give a Budget",
            )


def _rank(schedule: BudgetSchedule) -> tuple[list[int], Fraction]:
    """Put the schedule first that pays for more of the most important reports; then the cheapest."""
    needs = Fraction(2**1000) if schedule.needs is None else schedule.needs
    return [-line.fitting for line in schedule.lines], needs


def _scheduled(
    priced: Sequence[tuple[AskedReport, Plan[Any]]], state: Filter, above: tuple[Filter, ...] = ()
) -> BudgetSchedule:
    """Charge a copy of every filter with one report after the other, as often as all of them admit it.

    The sums of a filter do not depend on the order. A charge that fits only because it is the first of all
    counts if it is the only one.
    """
    paying, lines = [state, *above], []
    charges: list[tuple[Any, int]] = []
    wanted: list[tuple[Any, int]] = []
    alone = len(priced) == 1 and priced[0][0].times == 1
    for asked, plan in priced:
        cost = plan.cost
        spends = [one.spend_of(cost) for one in paying]
        fitting = 0
        while fitting < asked.times:
            first = cost.fits if alone else None
            after = [one.charged(spend, first) for one, spend in zip(paying, spends, strict=True)]
            admitted = [one for one in after if one]
            if len(admitted) < len(paying):
                break
            paying, fitting = admitted, fitting + 1
        charges.append((cost, fitting))
        wanted.append((cost, asked.times))
        so_far = needed_budget(state, charges)
        if so_far is not None:  # four digits rounded up may be more than the budget, which pays for it
            so_far = min(so_far, state.budget.epsilon or state.budget.rho or so_far)
        lines.append(PricedReport(asked, plan, fitting, so_far, needed_budget(state, wanted)))
    enough = all(charged_all(one, wanted).within for one in above)
    return BudgetSchedule(tuple(lines), state, lines[-1].wanted if enough else None, above)
