"""A year's plan for a budget: which reports fit, at which price, and what the others would take.

- The smallest budget that pays for given charges follows from the filters that ledgers use.
- The price of a report is that of the plan that keeps its error and takes least of the budget.
- The schedule is shown as a page and a figure, with words for what the rest would take.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget, Cost, Filter, Spend
from tacit.bisection import first_number
from tacit.core._batch_split import DEFAULT_LEVEL, planned
from tacit.core._goal import WITHIN
from tacit.core._plan import promise_in_words
from tacit.core._question import Question
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Choose, Code, Set
from tacit.parameters import Instance, Listed, exactly_one
from tacit.report import Report, Reportable, ReportTable
from tacit.show import GREY, ORANGE, RED, Chart, ChartAxis, ChartSeries, Drawn, Figure, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.core._dataset import Dataset
    from tacit.core._plan import Plan


_MAX_BUDGET = 2**20  # no budget beyond it
_LOWEST, _HIGHEST = Fraction(1, 2**30), Fraction(2**12)
_FIELDS = ("name", "question", "within", "epsilon", "rho", "delta", "confidence", "size", "times", "priority")
_MAX_TIMES = 1_000
_BUDGET = Instance(Budget, "tc.Budget(epsilon=3)", "a Budget or a dataset")
_REPORT = "{'name': 'stays', 'question': q, 'within': 5, 'times': 12}"
_EXAMPLE = Code(f"tc.budget_plan([{_REPORT}], tc.Budget(3))")


def charged_all(state: Filter, charges: Sequence[tuple[Plan[Any] | Cost, int]]) -> Filter:
    """Return a filter after all plans (or costs), each a number of times; ``within``: whether they fit."""
    for charge, times in charges:
        spend = _spend_of(state, charge)
        for _ in range(times):
            state = state.added(spend)
    return state


def _spend_of(state: Filter, charge: Plan[Any] | Cost) -> Spend:
    """Return what a plan, with its promise, or a bare cost takes from a filter."""
    if isinstance(charge, Cost):
        return state.spend_of(charge)
    return state.spend_of(charge.cost, charge.promise)


def needed_budget(state: Filter, charges: Sequence[tuple[Plan[Any] | Cost, int]]) -> Fraction | None:
    """Return the smallest epsilon (or rho) with which a budget pays for the charges; its delta stays.

    What was spent before counts too. None stands for "no epsilon is enough": the delta, or the kind of the
    budget, stands in the way. With a delta the number has four digits, rounded up and checked.

    Examples
    --------
    >>> from tacit.accounting import Cost
    >>> needed_budget(Filter.start(Budget(epsilon=1)), [(Cost.pure(0.3), 4)])
    Fraction(6, 5)
    """
    state_after, budget = charged_all(state, charges), state.budget
    if budget.rho is not None:
        return state_after.rho if state_after.delta <= budget.delta else None
    if not budget.delta:
        return None if state_after.delta else state_after.epsilon
    if state_after.epsilon == 0 and not state_after.delta:
        return Fraction(0)

    def fits(epsilon: Fraction) -> bool:
        start = Filter.start(Budget(epsilon, budget.delta), version=state.version)
        before = start.added(Spend(state.epsilon, min(state.delta, Fraction(1)), state.rho))
        before = replace(before, promised=state.promised)
        return charged_all(before, charges).within

    return _smallest_budget(fits, budget.epsilon or Fraction(1))


def _smallest_budget(fits: Callable[[Fraction], bool], start: Fraction) -> Fraction | None:
    """Find the smallest number of four digits that fits, to a tenth of a percent."""
    high = start
    while not fits(high):
        high *= 2
        if high > _MAX_BUDGET:
            return None
    low = high / 2
    while low > Fraction(1, 2**30) and fits(low):
        low, high = low / 2, low

    def middle(low: Fraction, high: Fraction) -> Fraction:
        return Fraction(math.sqrt(float(low) * float(high))).limit_denominator(10**9)

    smallest = first_number(fits, low, high, ratio=Fraction(1001, 1000), middle=middle)
    short = rounded_up(smallest)
    return short if fits(short) else smallest


def rounded_up(value: Fraction) -> Fraction:
    """Return a number in four digits, rounded up.

    Examples
    --------
    >>> rounded_up(Fraction(2, 3))
    Fraction(6667, 10000)
    """
    if value <= 0:
        return value
    digits = 3 - math.floor(math.log10(value))
    step = Fraction(10) ** -digits
    return math.ceil(value / step) * step


def plans_of(report: AskedReport, state: Filter) -> list[Plan[Any]]:
    """Return plans of one release: at the price that was given, or such that just keep the error.

    A budget with a delta or in rho may pay less for Gaussian noise (the last plan) than for noise of a pure
    epsilon (the first). The plan of which it pays for more releases is in the middle.
    """
    if report.within is None:
        return [_plan_at_price(report, epsilon=report.epsilon, rho=report.rho)]
    budget = state.budget
    plans = []
    if budget.rho is None or not report.delta:
        plans.append(_within_by_epsilon(report))
    if budget.rho is not None or budget.delta:
        try:
            plans.append(_search_price(report, "rho"))
        except TacitError:
            if not plans:
                raise
    untouched = Filter.start(budget)

    def rank(plan: Plan[Any]) -> tuple[int, float]:
        rho = plan.cost.spend.rho
        return -untouched.how_many(plan.cost, plan.promise), math.inf if rho is None else float(rho)

    return [plans[0], min(plans, key=rank), plans[-1]] if len(plans) > 1 else plans


def _plan_at_price(report: AskedReport, **price: Fraction | None) -> Plan[Any]:
    size = None if report.size is None else Fraction(report.size)
    if size is not None and hasattr(report.question, "plan"):
        return _plan_with_size(report, price)
    return planned(report.question, report.confidence, delta=report.delta, **price)


def _plan_with_size(report: AskedReport, price: dict[str, Fraction | None]) -> Plan[Any]:
    """Plan a question with its public guess of the number of rows."""

    def with_size(**price: Any) -> Any:
        return report.question.plan(size=report.size, **price)

    return planned(with_size, report.confidence, delta=report.delta, **price)


def _within_by_epsilon(report: AskedReport) -> Plan[Any]:
    """Let the question find its epsilon, if it can; else search it."""
    question = report.question
    if isinstance(question, Question) and WITHIN in question.kind.takes:
        return _plan_at_price(report, within=report.within)
    return _search_price(report, "epsilon")


def _search_price(report: AskedReport, kind: str) -> Plan[Any]:
    """Find the smallest epsilon or rho at which every column stays within the error; checked forward."""
    assert report.within is not None  # noqa: S101 - the caller knows
    within = float(report.within)

    def keeping(price: Fraction) -> Plan[Any] | None:
        plan = _plan_at_price(report, **{kind: price})
        return plan if largest_error(plan) <= within else None

    high, low = Fraction(1), Fraction(1, 2)
    best = keeping(high)
    while best is None:
        low, high = high, high * 4
        if high > _HIGHEST:
            raise bad_parameter(
                f"within of {report.name}",
                "an error that can be reached",
                within,
                fix=Set(within=10 * within),
            )
        best = keeping(high)
    while low > _LOWEST and (more := keeping(low)) is not None:
        low, high, best = low / 4, low, more
    while high / low > Fraction(1001, 1000):
        middle = _geometric_mean(low, high)
        more = keeping(middle)
        low, high, best = (middle, high, best) if more is None else (low, middle, more)
    return keeping(rounded_up(high)) or best


def largest_error(plan: Plan[Any]) -> float:
    """Return the largest expected error of a plan's columns, or refuse where one cannot be known."""
    errors = [(one.column, one.error, one.note) for one in plan.forecast]
    for column, error, note in errors:
        if error is None:
            raise TacitError(
                "bad-parameter",
                f"the error of {column} is not known from public facts",
                why=note,
                fix=Set(size=1000),
            )
    if not errors:
        raise TacitError(
            "bad-parameter", "a plan without columns has no error to stay within", fix=Set(epsilon=0.5)
        )
    return max(float(error or 0) for _, error, _ in errors)


def most_that_fits(
    report: AskedReport,
    plan: Plan[Any],
    states: Sequence[Filter],
    others: Sequence[tuple[Plan[Any] | Cost, int]],
) -> Plan[Any] | None:
    """Return the plan of the largest price at which all releases of a report fit beside others; None: none.

    Parameters
    ----------
    report, plan
        The report, and the plan of one release that does not fit as often as it is wanted.
    states, others
        The budgets, all of which pay, and what else they pay for.
    """
    rooms = [charged_all(state, others) for state in states]
    if not all(room.within for room in rooms):
        return None
    kind = "rho" if "rho" in plan.promised else "epsilon"

    def fitting(price: Fraction) -> Plan[Any] | None:
        tried = _plan_at_price(report, **{kind: price})
        fits = all(charged_all(room, [(tried, report.times)]).within for room in rooms)
        return tried if fits else None

    high = plan.promised[kind]
    return _largest_plan(fitting, high)


def _largest_plan(fitting: Callable[[Fraction], Plan[Any] | None], high: Fraction) -> Plan[Any] | None:
    """Find the plan of the largest price below one that does not fit, in three digits."""
    low, best = high, None
    while best is None:
        low = _three_digits(low / 2)
        if low < _LOWEST:
            return None
        try:
            best = fitting(low)
        except TacitError:  # noise beyond what can be drawn
            return None
    high = min(high, 2 * low)
    while high / low > Fraction(101, 100):
        middle = _three_digits(_geometric_mean(low, high))
        if not low < middle < high:
            break
        more = fitting(middle)
        low, high, best = (low, middle, best) if more is None else (middle, high, more)
    return best


def _geometric_mean(low: Fraction, high: Fraction) -> Fraction:
    return Fraction(f"{math.sqrt(float(low) * float(high)):.6g}")


def _three_digits(value: Fraction) -> Fraction:
    return Fraction(f"{float(value):.3g}")


@dataclass(frozen=True, slots=True)
class Remedy:
    """What would make a schedule fit: a larger budget, a cheaper plan, or fewer releases; one is enough.

    Parameters
    ----------
    report
        The last report of which not every release fits.
    budget
        The smallest epsilon (or rho) of a budget that pays for everything; None if a larger one is no help.
    plan
        The plan of the largest price at which every release of that report fits beside the others; None if
        the others alone do not fit.
    times
        How many releases of that report fit beside what is scheduled before it; enough only if all other
        reports fit.
    """

    report: str
    budget: Fraction | None
    plan: Plan[Any] | None
    times: int


def remedy_of(schedule: BudgetSchedule) -> Remedy | None:
    """Return what would make a schedule fit; None if it does."""
    short = [line for line in schedule.lines if not line.fits]
    if not short:
        return None
    last_line = short[-1]
    others = [(line.plan, line.asked.times) for line in schedule.lines if line is not last_line]
    plan = most_that_fits(last_line.asked, last_line.plan, (schedule.state, *schedule.above), others)
    return Remedy(last_line.asked.name, schedule.needs, plan, last_line.fitting)


def what_it_takes(schedule: BudgetSchedule) -> tuple[str, ...]:
    """Say what does not fit, and what it would take."""
    remedy = remedy_of(schedule)
    if remedy is None:
        return ()
    short = [line for line in schedule.lines if not line.fits]
    sentences = [f"{_shortfall(line)}." for line in short]
    kind = _budget_kind(schedule)
    if remedy.budget is not None:
        delta = f" with the same delta of {float(schedule.budget.delta):g}" if schedule.budget.delta else ""
        sentences.append(f"A budget of {kind} {_up(remedy.budget)}{delta} pays for everything.")
    else:
        sentences.append(f"No larger {kind} helps: {_obstacle(schedule)}.")
    last_line = short[-1]
    if remedy.plan is not None:
        sentences.append(f"Or {_advice_for(last_line, remedy.plan)}: then everything fits.")
    if len(short) == 1:
        sentences.append(
            f"Or leave out {last_line.asked.name}: then everything else fits."
            if not last_line.fitting
            else f"Or release {last_line.asked.name} {last_line.fitting} "
            f"{'time' if last_line.fitting == 1 else 'times'} instead of {last_line.asked.times}."
        )
    return tuple(sentences)


def _shortfall(line: PricedReport) -> str:
    name, times = line.asked.name, line.asked.times
    if not line.fitting:
        return f"{name} does not fit" if times == 1 else f"None of the {times} releases of {name} fits"
    return f"Of {name}, {line.fitting} of {times} releases fit"


def _advice_for(line: PricedReport, plan: Plan[Any]) -> str:
    """Say which error, or which price, would make all releases of a report fit."""
    price = promise_in_words(plan.promised)
    try:
        error = largest_error(plan)
    except TacitError:
        return f"release {line.asked.name} for {price} each"
    up = float(rounded_up(Fraction(error)))
    return f"accept an error of {up:g} in {line.asked.name}, which then costs {price} each"


def _obstacle(schedule: BudgetSchedule) -> str:
    if schedule.above and schedule.lines[-1].wanted is not None:
        return "another account that pays for the same answers has too little left"
    if any(line.plan.cost.spend.delta for line in schedule.lines):
        return "the reports need more delta than the budget has for answers"
    return "the budget does not admit costs of this kind"


def _budget_kind(schedule: BudgetSchedule) -> str:
    return "rho" if schedule.budget.rho is not None else "epsilon"


def _budget_total(schedule: BudgetSchedule) -> Fraction:
    budget = schedule.budget
    return (budget.epsilon if budget.rho is None else budget.rho) or Fraction(0)


def _up(value: Fraction | None) -> str:
    return "-" if value is None else f"{float(rounded_up(value)):g}"


def schedule_page(schedule: BudgetSchedule) -> Report:
    """Return the schedule as a page: a line for each report, then what the rest would take."""
    kind, total = _budget_kind(schedule), _budget_total(schedule)
    rows = tuple(
        (
            line.asked.name,
            f"{line.asked.times}",
            promise_in_words(line.plan.promised),
            _expected_error(line),
            "yes" if line.fits else f"{line.fitting} of {line.asked.times}",
            f"{_up(line.cumulative)} of {float(total):g}",
        )
        for line in schedule.lines
    )
    delta = f", delta {float(schedule.budget.delta):g}" if schedule.budget.delta else ""
    head = ("report", "times", "each costs", "error", "fits", f"{kind} so far")
    lead = (
        "Everything fits: the ledger admits all of it, in any order."
        if schedule.fits
        else "Not everything fits.",
    )
    table = ReportTable("", head, rows)
    return Report(f"Plan for a budget of {kind} {float(total):g}{delta}", lead, (table,), schedule.advice)


def _expected_error(line: PricedReport) -> str:
    try:
        return f"{float(rounded_up(Fraction(largest_error(line.plan)))):g}"
    except TacitError:
        return "-"


def schedule_figure(schedule: BudgetSchedule) -> Figure:
    """Show bars for what each report adds, and what is left after it."""
    kind, total = _budget_kind(schedule), float(_budget_total(schedule))
    names = tuple(shortened(line.asked.name, 18) for line in schedule.lines)
    so_far = [float(line.cumulative or 0) for line in schedule.lines]
    prices = [float(line.wanted or 0) for line in schedule.lines]
    missing = [total + max(0.0, w - max(s, total)) for w, s in zip(prices, so_far, strict=True)]
    beyond = [place for place, end in enumerate(missing) if end > total]
    series = [ChartSeries("bars", range(len(names)), so_far, label="paid", base=[0.0, *so_far[:-1]])]
    if beyond:
        ends, base = [missing[place] for place in beyond], [total] * len(beyond)
        series.append(
            ChartSeries("bars", beyond, ends, label="does not fit", colour=RED, dashed=True, base=base)
        )
    budget = f"budget: {kind} {total:g}"
    series.append(ChartSeries("across", (), (total,), label=budget, colour=GREY, dashed=True))
    remaining = [total - one for one in so_far]
    series.append(ChartSeries("joined", range(len(names)), remaining, label="left afterwards", colour=ORANGE))
    title = "What each report takes of the budget, in the order of priority"
    return Figure(title, (Chart(tuple(series), ChartAxis("", names), ChartAxis(kind)),))


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
    mappings = Listed("reports", f"[{_REPORT}]").read("reports", reports)
    read_reports = [AskedReport.read(one, index) for index, one in enumerate(mappings, 1)]
    names = [one.name for one in read_reports]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise bad_parameter("name", "different for each report", twice, fix="rename one of them")
    states = _states_of(budget)
    ordered = sorted(
        read_reports, key=lambda one: one.priority
    )  # stable: as given where priorities are equal
    options = [plans_of(one, states[0]) for one in ordered]
    if not isinstance(budget, Budget):
        _check_dataset(ordered, options, budget)
    best = _best_schedule(ordered, options, states)
    charges = [(line.plan, line.asked.times) for line in best.lines]
    for index, state in enumerate(states[1:] if best.wanted_within else (), 1):  # one above has too little
        if not charged_all(state, charges).within:
            return _best_schedule(ordered, options, [state, *states[:index], *states[index + 1 :]])
    return best


def _best_schedule(
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
        why = "an error or a price decides what one release costs"
        exactly_one(f"the report {name}", why=why, fix=Set(within=5), **goals)
        delta = rational(f"the delta of {name}", given.get("delta", 0), zero=True)
        level = rational(f"the confidence of {name}", given.get("confidence", DEFAULT_LEVEL))
        if delta >= 1 or level >= 1:
            raise bad_parameter(
                f"delta and confidence of {name}", "below 1", f"{float(delta):g} and {float(level):g}",
                fix=Set(delta=1e-7, confidence=0.95),
            )  # fmt: skip
        times = count(f"times of {name}", given.get("times", 1), zero=False)
        if times > _MAX_TIMES:
            raise bad_parameter(
                f"times of {name}", f"at most {_MAX_TIMES:,}", times,
                why="a stream or a run releases very often for one charge", fix=Set(times=365),
            )  # fmt: skip
        size = None if given.get("size") is None else count(f"size of {name}", given["size"], zero=False)
        priority = rational(f"the priority of {name}", given.get("priority", 0), zero=True, negative=True)
        return cls(
            name, question, **goals, delta=delta, confidence=level, times=times, priority=priority, size=size
        )


def _number(fields: Mapping[str, Any], field: str, name: str) -> Fraction | None:
    value: Number | None = fields.get(field)
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
        return charged_all(self.state, [(one.plan, one.asked.times) for one in self.lines]).within

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
        from tacit.core._tabular import needs

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
    states: list[Filter] = [account.filter]
    while getattr(account, "parent", None) is not None:  # a service shows the allotment alone
        account = ledger.account(account.parent)
        states.append(account.filter)
    return states


def _check_dataset(
    reports: Sequence[AskedReport], options: Sequence[list[Plan[Any]]], dataset: Dataset
) -> None:
    """Refuse a report about other data than the account pays for: another account would be charged."""
    mine, ledger = dataset.identity, dataset._ledger  # noqa: SLF001 - the core's own
    for report, plans in zip(reports, options, strict=True):
        members = [member for plan in plans for member in plan._members]  # noqa: SLF001
        if not any(
            (member.identity.name, member.identity.adjacency) == (mine.name, mine.adjacency)
            and (member.ledger is ledger or member.ledger == ledger)
            for member in members
        ):
            raise TacitError(
                "not-allowed",
                f"the report {report.name} does not ask {mine.name}, whose budget was given",
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
    costs: list[tuple[Any, int]] = []
    is_alone = len(priced) == 1 and priced[0][0].times == 1
    for report, plan in priced:
        cost = plan.cost
        spends = [_spend_of(one, plan) for one in paying]
        fitting = 0
        while fitting < report.times:
            first_fits = cost.fits if is_alone else None
            after = [one.charged(spend, first_fits) for one, spend in zip(paying, spends, strict=True)]
            admitted = [one for one in after if one]
            if len(admitted) < len(paying):
                break
            paying, fitting = admitted, fitting + 1
        charges.append((plan, fitting))
        costs.append((plan, report.times))
        so_far = needed_budget(state, charges)
        if so_far is not None:  # four digits rounded up may be more than the budget, which pays for it
            so_far = min(so_far, state.budget.epsilon or state.budget.rho or so_far)
        lines.append(PricedReport(report, plan, fitting, so_far, needed_budget(state, costs)))
    enough = all(charged_all(one, costs).within for one in above)
    return BudgetSchedule(tuple(lines), state, lines[-1].wanted if enough else None, above)
