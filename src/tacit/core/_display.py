"""The core's display of plans in a terminal and in a notebook; how numbers and keys are shown everywhere."""

from __future__ import annotations

import io
import math
import shutil
import sys
import textwrap
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from html import escape
from typing import TYPE_CHECKING, Any

from tacit.accounting import cost_of_budget
from tacit.core._plan import promise_in_words
from tacit.core._shown_digits import HIDDEN
from tacit.core._unit import notes_on
from tacit.errors import TacitError
from tacit.report import short_percent
from tacit.show import decimals, rounded_end

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from tacit.accounting import Budget, Cost
    from tacit.core._answer_table import Value
    from tacit.core._plan import Forecast, Plan
    from tacit.core._plan_run import Member


_LONGEST = 40  # letters of a word that is not broken: a long key must not push the values off the page


def rendered(*parts: RenderableType) -> str:
    """Lay out text for the terminal; without one for COLUMNS, or for 80 columns."""
    from rich.box import ASCII
    from rich.console import Console
    from rich.table import Table

    unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    out = io.StringIO()
    console = Console(
        file=out,
        width=_width(),
        color_system=None,
        legacy_windows=False,
        markup=False,
        highlight=False,
        force_jupyter=False,  # in a notebook, rich would show every part itself and return nothing
    )
    for part in parts:
        if not isinstance(part, Table):
            console.print(part)
            continue
        if not unicode:
            part.box = ASCII
        if fitted(part):
            console.print(part)
        else:
            console.print("\n".join(_stacked_table(part, console.width)), soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _width() -> int:
    return min(max(shutil.get_terminal_size().columns, 40), 160)


def fitted(table: Table) -> bool:
    """Give each column of a table a width at which no word is cut, if there is room for that."""
    from rich.cells import cell_len

    texts = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    full_widths = [
        max(cell_len(line) for text in column for line in text.splitlines() or [""]) for column in texts
    ]
    min_widths = [
        full
        if column.no_wrap
        else min(max(cell_len(word) for text in cells for word in (text.split() or [""])), _LONGEST)
        for column, cells, full in zip(table.columns, texts, full_widths, strict=True)
    ]
    spare = _width() - 1 - sum(min_widths) - 3 * len(min_widths)  # a border and two spaces for each column
    if spare < 0:
        return False
    for i in sorted(range(len(min_widths)), key=lambda i: full_widths[i] - min_widths[i]):
        open_ = sum(1 for w, n in zip(full_widths, min_widths, strict=True) if w > n)
        more = min(full_widths[i] - min_widths[i], spare // open_) if open_ else 0
        table.columns[i].width = min_widths[i] + more
        min_widths[i], spare = full_widths[i], spare - more
    return True


def _stacked_table(table: Table, width: int) -> list[str]:
    """Write a table that is too wide one cell below the other, so that no number is cut."""
    heads = [str(column.header) for column in table.columns]
    room = max(map(len, heads)) + 2
    lines = [str(table.title)] if table.title else []
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        lines += [""] if lines else []
        for head, cell in zip(heads, cells, strict=True):
            text, beside = str(cell).replace("\n", "  "), max(width - room, 24)
            parts = [text] if len(text) <= beside else str(cell).split("\n")
            told = [
                line for part in parts for line in textwrap.wrap(part, beside, break_long_words=False) or [""]
            ]
            lines += [f"{head:<{room}}{told[0]}", *(" " * room + more for more in told[1:])]
    return [*lines, ""]


def in_html(text: str) -> str:
    """Write text for a notebook: signs of HTML are escaped."""
    return escape(text)


def shown(value: Value) -> str:
    """Write a released value in a few digits."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return "" if value is None else str(value)
    if abs(value) >= 1e15 or not math.isfinite(value):
        return f"{value:.4g}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 10_000 else f"{value:,.4g}"


def shown_cell(
    value: Value, low: float | None, high: float | None, *, whole: bool = False
) -> tuple[str, str, str]:
    """Write a value and its interval with the decimals that the interval supports, the ends rounded outwards.

    Whole numbers stay whole; with ``whole``, estimates of counts are whole too. A value that the noise hides
    has words in its place.

    Examples
    --------
    >>> shown_cell(29.4631, 28.4402, 30.4815), shown_cell(489, 477, 501)
    (('29.5', '28.4', '30.5'), ('489', '477', '501'))
    >>> shown_cell(None, 0.0, 21.26), shown_cell(12.37, 8.1, 16.6, whole=True)
    (('hidden by the noise', '0', '22'), ('12', '8', '17'))
    """
    if low is None or high is None:
        return shown(value), "", ""
    numbers = [end for end in (value, low, high) if isinstance(end, int | float)]
    is_whole = all(math.isfinite(end) and end == int(end) for end in numbers)
    are_small = all(abs(end) < 1e15 for end in numbers)
    places = 0 if whole and are_small else None if is_whole or not are_small else decimals(low, high)
    if places is None:
        ends = shown(_rounded_end(low, ROUND_FLOOR)), shown(_rounded_end(high, ROUND_CEILING))
        return (HIDDEN if value is None else shown(value), *ends)
    text = f"{value:z,.{places}f}" if isinstance(value, int | float) else HIDDEN
    return text, rounded_end(low, places, ROUND_FLOOR), rounded_end(high, places, ROUND_CEILING)


def _rounded_end(end: float, rounding: str) -> float:
    if not math.isfinite(end) or (end == int(end) and abs(end) < 1e15):
        return end
    if 10_000 <= abs(end) < 1e15:
        return math.floor(end) if rounding == ROUND_FLOOR else math.ceil(end)
    return float(Context(prec=4, rounding=rounding).create_decimal(Decimal(end)))


def shown_key(value: Value, *, totals: bool = False) -> str:
    """Write a group's key as it is: a year has no thousands, and a total or missing values have a name.

    Examples
    --------
    >>> shown_key(2024.0), shown_key(None), shown_key(None, totals=True)
    ('2024', '(missing)', '(all)')
    """
    if value is None:
        return "(all)" if totals else "(missing)"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _cost(plan: Plan[Any]) -> str:
    return promise_in_words(plan.promised)


def plan_meaning(plan: Plan[Any]) -> str:
    """Say what a plan's total means in odds; with a delta, what holds except with that probability.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
    >>> plan_meaning(visits.agg(n=tc.count()).plan(epsilon=0.5)).split(", ")[-1]
    'move by at most a factor of 1.649'
    """
    epsilon = plan.promised.get("epsilon")
    if epsilon is None:
        return "rho does not bound the odds by a fixed factor; explain shows an epsilon and its delta for it"
    about = f"the odds of any fact about one {plan.unit.noun}, such as being in the data,"
    if plan._members[0].identity.adjacency == "replace":  # noqa: SLF001 - that a unit is in the data is open
        about = f"the odds between any two values that the data of one {plan.unit.noun} may have"
    text = f"{about} move by at most a factor of {odds_factor(epsilon)}"
    delta = float(plan.promised.get("delta", 0))
    return f"{text}; this promise may fail completely with probability at most {delta:g}" if delta else text


def risk_words(plan: Plan[Any], cost: Cost) -> str:
    """Say what a cost lets an attacker achieve, in the terms of the risk that a plan was asked for by."""
    if plan.risk is None:
        return ""
    return plan.risk.words(cost, plan.unit.noun, plan._members[0].identity.adjacency)  # noqa: SLF001


def risk_lines(plan: Plan[Any], *, account: bool = True) -> list[tuple[str, str]]:
    """Say what an attacker can achieve with a plan that was asked for by its risk, and with its account.

    A risk bounds one plan. Everything that the budget of the account pays for has another, larger risk.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
    >>> [of_plan, of_account] = risk_lines(visits.agg(n=tc.count()).plan(advantage=0.05))
    >>> of_plan[1][-51:]
    'is right at most 52.5 % of the time instead of 50 %'
    """
    if plan.risk is None:
        return []
    lines = [("risk of this plan", risk_words(plan, plan.cost))]
    members = [one for one in plan._members if account and one.ledger is not None]  # noqa: SLF001 - the core's own
    for member in members:
        try:
            budget = member.ledger.account(member.identity.name).budget  # type: ignore[union-attr]
        except TacitError:  # a ledger that is closed, or cannot be reached now
            continue
        name = f" {member.identity.name}" if len(members) > 1 else ""
        lines.append((f"risk of the account{name}", budget_risk(plan, budget)))
    return lines


def budget_risk(plan: Plan[Any], budget: Budget) -> str:
    """Say what an attacker can achieve with all that a budget pays for, in the terms of a plan's risk."""
    parts = {"epsilon": budget.epsilon, "delta": budget.delta, "rho": budget.rho}
    total = promise_in_words({name: value for name, value in parts.items() if value})
    return f"with all that its budget ({total}) pays for: {risk_words(plan, cost_of_budget(budget))}"


def odds_factor(epsilon: object) -> str:
    """Show exp(epsilon) in four digits, rounded up: a bound is never shown smaller than it is.

    Examples
    --------
    >>> odds_factor(0.5), odds_factor(60)
    ('1.649', 'exp(60)')
    """
    value = float(epsilon)  # type: ignore[arg-type]
    if value >= 50:
        return f"exp({value:g})"
    up = Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(math.exp(value) * (1 + 2**-50))
    return f"{float(up):g}"


def _expected(column: Forecast) -> str:
    """Write the expected error, rounded up as the interval will be, or why there is none, and the caution."""
    error = "" if column.error is None else shown(_rounded_end(column.error, ROUND_CEILING))
    return "; ".join(part for part in (error, column.note if not error else "", column.caution) if part)


def left_afterwards(filter_: Any, cost: Cost, promise: Budget | None = None) -> str:
    """Say what is left of a budget after a charge: one more question of a size, or some more like this one.

    Examples
    --------
    >>> from tacit.accounting import Budget, Cost, Filter
    >>> left_afterwards(Filter.start(Budget(epsilon=3)), Cost.pure(1))
    'one more question of up to epsilon 2; or 2 more like this one'
    """
    after = filter_.charged(filter_.spend_of(cost, promise), cost.fits)
    if after is None:
        return f"not enough for this question; now left: {filter_.remaining}"
    return str(after.left(cost, promise))


def _remaining_lines(plan: Plan[Any]) -> list[tuple[str, str]]:
    """Say what each dataset has left afterwards; an answer that is stored and paid for costs nothing again.

    Both are facts of the ledger, which is only read: nothing is charged, and no data is touched.
    """
    paying = [member for member in plan._members if member.ledger is not None and not member.blocks]  # noqa: SLF001
    lines = []
    for member in paying:
        try:
            filter_ = member.ledger.account(member.identity.name).filter  # type: ignore[union-attr]
        except TacitError:  # a ledger that is closed, or cannot be reached now
            return []
        name = f" in {member.identity.name}" if len(paying) > 1 else ""
        left = left_afterwards(filter_, member.cost, member.promise)
        if _is_paid(member):
            left = f"already answered: the same question again is free; left: {filter_.remaining}"
        lines.append((f"left afterwards{name}", left))
    return lines


def _is_paid(member: Member) -> bool:
    """Return whether the ledger has the answer; that of a service does not say it."""
    identity = member.identity
    try:
        paid = member.ledger.paid_release(identity.name, member.hash, version=identity.version)  # type: ignore[union-attr]
    except TacitError:
        return False
    return paid is not None


def plan_text(plan: Plan[Any], *, left: bool = True, budget: bool = True) -> str:
    """Write a plan for the terminal.

    Parameters
    ----------
    plan
        The plan.
    left
        Whether to say what is left of the budget afterwards.
    budget
        Whether to say what an attacker can achieve with the whole budget.
    """
    from rich.table import Table
    from rich.text import Text

    title = f"plan for {plan.name}: {_cost(plan)}"
    lines = "\n".join(
        f"{name}: {text}" for name, text in _lines(plan, with_remaining=left, with_budget=budget)
    )
    forecast = plan.forecast
    if not forecast:  # a model has no columns
        return rendered(title, lines)
    table = Table(title=Text(title), title_justify="left")
    for name in ("column", "what", "noise", f"+/- at {short_percent(float(plan.confidence))}"):
        table.add_column(Text(name))
    for column in forecast:
        error = _expected(column)
        table.add_row(*(Text(t) for t in (column.column, column.meaning, column.mechanism, error)))
    return rendered(table, lines)


def _lines(
    plan: Plan[Any], *, with_remaining: bool = True, with_budget: bool = True
) -> list[tuple[str, str]]:
    """List what is said below the columns, in a terminal and in a notebook alike."""
    where = "runs on the device of the person who answers; no ledger is charged"
    return [
        *plan.facts,
        *([("local", where)] if plan.is_local else []),
        *(
            [("run", f"{plan.instalments:,} instalments, charged once")]
            if plan.instalments and "run" not in dict(plan.facts)  # a field may say it better
            else []
        ),
        ("meaning", plan_meaning(plan)),
        *risk_lines(plan, account=with_budget),
        *(_remaining_lines(plan) if with_remaining else []),
        *(("budget", note) for one in plan._members for note in notes_on(one.ledger, one.identity.name)),  # noqa: SLF001
        ("unit", f"{plan.unit}; hash {plan.hash[:16]}"),
    ]


def plan_html(plan: Plan[Any]) -> str:
    """Write a plan for a notebook."""
    head = ("column", "what", "noise", f"\N{PLUS-MINUS SIGN} at {short_percent(float(plan.confidence))}")
    cells = [(c.column, c.meaning, c.mechanism, _expected(c)) for c in plan.forecast]
    rows = "".join(
        "<tr>" + "".join(f'<{tag} style="text-align:left">{in_html(t)}</{tag}>' for t in line) + "</tr>"
        for tag, line in (("th", head), *(("td", line) for line in cells))
    )
    lines = "".join(f"<li><b>{in_html(name)}</b>: {in_html(text)}</li>" for name, text in _lines(plan))
    table = f"<table>{rows}</table>" if cells else ""  # a model has no columns
    return f"<b>Plan for {in_html(plan.name)}: {in_html(_cost(plan))}</b>{table}<ul>{lines}</ul>"
