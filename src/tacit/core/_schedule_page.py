"""The page and the figure of a year's plan for a budget, and what the rest would take, in words."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.core._budget_need import rounded_up
from tacit.core._refusal_words import promise_in_words
from tacit.core._report_prices import largest_error, most_that_fits
from tacit.errors import TacitError
from tacit.report import Report, ReportTable
from tacit.show import GREY, ORANGE, RED, Chart, ChartAxis, ChartSeries, Figure, shortened

if TYPE_CHECKING:
    from tacit.core._budget_schedule import BudgetSchedule, PricedReport
    from tacit.core._plan import Plan


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
    last = short[-1]
    others = [(line.plan.cost, line.asked.times) for line in schedule.lines if line is not last]
    plan = most_that_fits(last.asked, last.plan, (schedule.state, *schedule.above), others)
    return Remedy(last.asked.name, schedule.needs, plan, last.fitting)


def what_it_takes(schedule: BudgetSchedule) -> tuple[str, ...]:
    """Say what does not fit, and what it would take."""
    remedy = remedy_of(schedule)
    if remedy is None:
        return ()
    short = [line for line in schedule.lines if not line.fits]
    said = [f"{_shortfall(line)}." for line in short]
    kind = _kind(schedule)
    if remedy.budget is not None:
        delta = f" with the same delta of {float(schedule.budget.delta):g}" if schedule.budget.delta else ""
        said.append(f"A budget of {kind} {_up(remedy.budget)}{delta} pays for everything.")
    else:
        said.append(f"No larger {kind} helps: {_obstacle(schedule)}.")
    last = short[-1]
    if remedy.plan is not None:
        said.append(f"Or {_softer(last, remedy.plan)}: then everything fits.")
    if len(short) == 1:
        said.append(
            f"Or leave out {last.asked.name}: then everything else fits."
            if not last.fitting
            else f"Or release {last.asked.name} {last.fitting} {'time' if last.fitting == 1 else 'times'} "
            f"instead of {last.asked.times}."
        )
    return tuple(said)


def _shortfall(line: PricedReport) -> str:
    name, times = line.asked.name, line.asked.times
    if not line.fitting:
        return f"{name} does not fit" if times == 1 else f"None of the {times} releases of {name} fits"
    return f"Of {name}, {line.fitting} of {times} releases fit"


def _softer(line: PricedReport, plan: Plan[Any]) -> str:
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


def _kind(schedule: BudgetSchedule) -> str:
    return "rho" if schedule.budget.rho is not None else "epsilon"


def _whole(schedule: BudgetSchedule) -> Fraction:
    budget = schedule.budget
    return (budget.epsilon if budget.rho is None else budget.rho) or Fraction(0)


def _up(value: Fraction | None) -> str:
    return "-" if value is None else f"{float(rounded_up(value)):g}"


def schedule_page(schedule: BudgetSchedule) -> Report:
    """Return the schedule as a page: a line for each report, then what the rest would take."""
    kind, whole = _kind(schedule), _whole(schedule)
    rows = tuple(
        (
            line.asked.name,
            f"{line.asked.times}",
            promise_in_words(line.plan.promised),
            _expected(line),
            "yes" if line.fits else f"{line.fitting} of {line.asked.times}",
            f"{_up(line.cumulative)} of {float(whole):g}",
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
    return Report(f"Plan for a budget of {kind} {float(whole):g}{delta}", lead, (table,), schedule.advice)


def _expected(line: PricedReport) -> str:
    try:
        return f"{float(rounded_up(Fraction(largest_error(line.plan)))):g}"
    except TacitError:
        return "-"


def schedule_figure(schedule: BudgetSchedule) -> Figure:
    """Show bars for what each report adds, and what is left after it."""
    kind, whole = _kind(schedule), float(_whole(schedule))
    names = tuple(shortened(line.asked.name, 18) for line in schedule.lines)
    so_far = [float(line.cumulative or 0) for line in schedule.lines]
    wanted = [float(line.wanted or 0) for line in schedule.lines]
    missing = [whole + max(0.0, w - max(s, whole)) for w, s in zip(wanted, so_far, strict=True)]
    beyond = [place for place, end in enumerate(missing) if end > whole]
    series = [ChartSeries("bars", range(len(names)), so_far, label="paid", base=[0.0, *so_far[:-1]])]
    if beyond:
        ends, base = [missing[place] for place in beyond], [whole] * len(beyond)
        series.append(
            ChartSeries("bars", beyond, ends, label="does not fit", colour=RED, dashed=True, base=base)
        )
    budget = f"budget: {kind} {whole:g}"
    series.append(ChartSeries("across", (), (whole,), label=budget, colour=GREY, dashed=True))
    left = [whole - one for one in so_far]
    series.append(ChartSeries("joined", range(len(names)), left, label="left afterwards", colour=ORANGE))
    title = "What each report takes of the budget, in the order of priority"
    return Figure(title, (Chart(tuple(series), ChartAxis("", names), ChartAxis(kind)),))
