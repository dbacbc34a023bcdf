"""The figures that explain what a cost means, and those of attacks: measured against proven.

The latter show what exact genomes, maps, networks and model updates give away, beside what noisy ones do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tacit.explain._odds import best_test
from tacit.report import percent, short_percent
from tacit.show import BLUE, GREEN, GREY, ORANGE, RED, Chart, ChartAxis, ChartSeries, Figure, Matrix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    _Grid = npt.NDArray[np.float64]
    from tacit.explain._explanation import Explanation
    from tacit.explain._tradeoff import RateDistortion, SmallCrowd, Spending, Tradeoff


_SHARES = tuple(np.linspace(0, 1, 101).tolist())
_WHOLE = (0.0, 1.0)


def explanation(meant: Explanation) -> Figure:
    """Show the belief after a release over the belief before, the best test, and the meaning for families."""
    before = np.array(_SHARES[1:-1])
    loss, label = meant.odds_limit
    beliefs = [ChartSeries("line", _WHOLE, _WHOLE, label="unchanged", colour=GREY, dashed=True)]
    for sign, colour, words in ((1, RED, "at most"), (-1, BLUE, "at least")):
        after = 1 / (1 + (1 - before) / before * np.exp(-sign * min(loss, 700)))
        beliefs.append(ChartSeries("line", before.tolist(), after.tolist(), label=words, colour=colour))
    power = best_test(meant.cost)
    tests = (
        ChartSeries("line", _WHOLE, _WHOLE, label="blind guessing", colour=GREY, dashed=True),
        ChartSeries("line", _SHARES, [power(rate) for rate in _SHARES], label="best possible", colour=RED),
    )
    sizes = tuple(str(family.size) for family in meant.families)
    families = ChartSeries("bars", range(len(sizes)), [family.advantage for family in meant.families])
    share = ChartAxis(kind="shares", ends=_WHOLE)
    panels = (
        Chart(tuple(beliefs), _named(share, "belief before"), _named(share, "belief after"),
              "What an attacker can believe", legend=label),
        Chart(tests, _named(share, "rate of false alarms"), _named(share, "rate of true alarms"),
              "The best test"),
        Chart((families,), ChartAxis("people together", sizes), _named(share, "advantage, at most"),
              "Groups and families"),
    )  # fmt: skip
    return Figure("", panels, across=3)


def _named(axis: ChartAxis, name: str) -> ChartAxis:
    return ChartAxis(name, axis.names, axis.kind, axis.ends)


def tradeoff_curve(answer: Tradeoff) -> Figure:
    """Show error over epsilon with the answer marked, and error over n where n matters."""
    errors = ChartAxis(f"{short_percent(answer.confidence)} of answers within", kind="logarithmic")
    answer_words = f"epsilon {answer.epsilon:.3g} for +/- {answer.error:g}"
    epsilons, widths = zip(*answer.curve, strict=True)
    curve = ChartSeries("line", epsilons, widths)
    mark = ChartSeries("points", (answer.epsilon,), (answer.error,), label=answer_words, colour=RED)
    title = f"Error of a {answer.question.statistic} over epsilon"
    panels = [Chart((curve, mark), ChartAxis("epsilon", kind="logarithmic"), errors, title)]
    if answer.crowd:
        sizes = ChartAxis("n", kind="logarithmic", ticks=tuple((float(n), f"{n:,}") for n, _ in answer.crowd))
        people, widths = zip(*answer.crowd, strict=True)
        crowd = ChartSeries("joined", people, widths, colour=GREEN)
        panels.append(Chart((crowd,), sizes, errors, f"Error over n, at epsilon {answer.epsilon:.3g}"))
    return Figure("", tuple(panels), across=2)


def rate_distortion_curves(figure: RateDistortion) -> Figure:
    """Show MSE over epsilon, and MSE over KL with the Gaussian line for comparison."""
    points = figure.points
    epsilon, mse = [p.epsilon for p in points], [p.mse for p in points]
    textbook = [p.textbook_mse for p in points]
    ends = np.geomspace(points[0].kl, points[-1].kl, 50)
    errors = ChartAxis("mean squared error", kind="logarithmic")
    information = (
        ChartSeries("line", epsilon, textbook, label="textbook 2 / epsilon^2", colour=GREY, dashed=True),
        ChartSeries("joined", epsilon, mse, label="noise that Tacit draws"),
    )
    right = (
        ChartSeries("line", [p.textbook_kl for p in points], textbook, label="Laplace, textbook", colour=GREY,
               dashed=True),
        ChartSeries("joined", [p.kl for p in points], mse, label="Laplace, as drawn"),
        ChartSeries("line", ends.tolist(), (0.5 / ends).tolist(), label="Gaussian: KL x MSE = 1/2 (not pure)",
               colour=ORANGE),
    )  # fmt: skip
    kl = ChartAxis("information about one person, KL in nats", kind="logarithmic")
    panels = (
        Chart(information, ChartAxis("epsilon", kind="logarithmic"), errors, "Error of a count"),
        Chart(right, kl, errors, "Rate and distortion"),
    )
    return Figure("", panels, across=2)


def small_crowd_density(crowd: SmallCrowd) -> Figure:
    """Show the density of the noisy answer, with the useless part shaded."""
    scale = crowd.bound / crowd.epsilon
    x = np.linspace(crowd.truth - 4 * scale, crowd.truth + 4 * scale, 401)
    density = np.exp(-np.abs(x - crowd.truth) / scale) / (2 * scale)
    useless = [
        None if abs(at - crowd.truth) < crowd.truth else height for at, height in zip(x, density, strict=True)
    ]
    shaded = [None if height is None else 0.0 for height in useless]
    words = "negative or wrong by more than 100 %"
    series = (
        ChartSeries("line", x.tolist(), density.tolist()),
        ChartSeries("line", x.tolist(), useless, shaded, useless, words, RED),
        ChartSeries(
            "upright", (crowd.truth,), (0.0,), label=f"true sum {crowd.truth:g}", colour=GREY, dashed=True
        ),
    )
    title = f"Sum over a few people, epsilon {crowd.epsilon:g}: useless with probability {crowd.useless:.2f}"
    return Figure(title, (Chart(series, ChartAxis("answer"), ChartAxis("density", ends=(0.0, None))),))


def spending(bought: Spending) -> Figure:
    """Show the share and relative error of each question, and the sum of the errors over the budget."""
    names = tuple(f"{one.name}: error {percent(one.relative, 2)}" for one in bought.purchases)
    shares = ChartSeries("bars", range(len(names)), [one.share for one in bought.purchases])
    budget = np.geomspace(bought.epsilon / 8, bought.epsilon * 8, 60)
    epsilons = budget.tolist()
    errors = (
        ChartSeries("line", epsilons, (bought.equal_split * bought.epsilon / budget).tolist(),
               label="equal shares", colour=GREY, dashed=True),
        ChartSeries("line", epsilons, (bought.total * bought.epsilon / budget).tolist(),
               label="best division"),
        ChartSeries("points", (bought.epsilon,), (bought.total,), colour=RED),
    )  # fmt: skip
    epsilon = ChartAxis("epsilon", kind="logarithmic")
    panels = (
        Chart((shares,), ChartAxis("", names), ChartAxis("share of the budget", kind="shares"),
              f"How epsilon {bought.epsilon:g} is divided"),
        Chart(errors, epsilon, ChartAxis("sum of weighted relative errors", kind="logarithmic"),
              "What a larger budget would buy"),
    )  # fmt: skip
    return Figure("", panels, across=2)


#: The axis of advantages, on which blind guessing is 0 and an attacker who is always right is 1.
ADVANTAGE = ChartAxis("attacker's advantage", ends=(-0.08, 1.08))


class MeasuredAdvantage(Protocol):
    """A measured advantage with its interval and its bound."""

    @property
    def epsilon(self) -> float: ...
    @property
    def advantage(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def bound(self) -> float: ...


def success_curve(
    curve: Sequence[MeasuredAdvantage], title: str, *, exposed: float, exposed_label: str
) -> Figure:
    """Show the measured advantage with its intervals, the bound, and the advantage without protection."""
    line = ChartSeries("across", (), (exposed,), label=exposed_label, colour=RED, dashed=True)
    epsilon = "epsilon (total cost of what the attacker saw)"
    return Figure(title, (advantage_chart(curve, "", (line,), epsilon),))


def advantage_chart(
    curve: Sequence[MeasuredAdvantage],
    title: str,
    more: tuple[ChartSeries, ...] = (),
    epsilon: str = "epsilon",
) -> Chart:
    """Return the measured advantage with its intervals over epsilon, and the bound of a pure cost."""
    epsilons = sorted(point.epsilon for point in curve)
    fine = np.geomspace(epsilons[0] / 1.5, epsilons[-1] * 1.5, 100)
    bound = np.tanh(fine / 2).tolist()
    impossible = ChartSeries(
        "line", fine.tolist(), bound, bound, [1.0] * 100, "bound tanh(epsilon / 2)", GREY
    )
    points = advantage_points(curve, "measured against Tacit", BLUE)
    return Chart((*more, impossible, points), named_powers(epsilons, epsilon), ADVANTAGE, title)


def advantage_points(curve: Sequence[MeasuredAdvantage], label: str, colour: int) -> ChartSeries:
    """Return measured advantages with their intervals over epsilon."""
    points = sorted(curve, key=lambda point: point.epsilon)
    ends = ((getattr(point, end) for point in points) for end in ("advantage", "low", "high"))
    return ChartSeries.of("points", [point.epsilon for point in points], ends, label=label, colour=colour)


def named_powers(values: Sequence[float], name: str, form: str = "g") -> ChartAxis:
    """Return a logarithmic axis on which exactly these values are written."""
    return ChartAxis(
        name, kind="logarithmic", ticks=tuple((float(value), format(value, form)) for value in values)
    )


def repeated_questions(
    repeats: Sequence[int],
    redrawn: Sequence[MeasuredAdvantage],
    stored: Sequence[MeasuredAdvantage],
    epsilon: float,
) -> Figure:
    """Show the advantage over the number of repetitions, for fresh noise and for stored answers."""
    series = []
    for points, colour, label in ((redrawn, RED, "fresh noise"), (stored, BLUE, "stored answer")):
        ends = ((getattr(point, end) for point in points) for end in ("advantage", "low", "high"))
        series.append(ChartSeries.of("joined", repeats, ends, label=label, colour=colour))
        bounds = [point.bound for point in points]
        series.append(
            ChartSeries("line", repeats, bounds, label=f"bound, {label}", colour=colour, dashed=True)
        )
    chart = Chart(tuple(series), named_powers(repeats, "number of times the question is asked"), ADVANTAGE)
    return Figure(f"The same question again, epsilon {epsilon:g} each time", (chart,))


def audit_curves(
    epsilons: Sequence[float],
    proven: Sequence[float],
    claimed: Sequence[float] | None,
    events: Mapping[str, float],
    *,
    confidence: float,
    delta: float,
) -> Figure:
    """Show the proven lower bound on delta, the claimed curve, and the epsilon that each event proves."""
    curves = [ChartSeries("line", epsilons, proven, label="proven: at least")]
    if claimed is not None:
        curves.append(
            ChartSeries("line", epsilons, claimed, label="claimed: at most", colour=RED, dashed=True)
        )
    chart = Chart(
        tuple(curves),
        ChartAxis("epsilon"),
        ChartAxis("delta"),
        f"Lower bound at confidence {confidence:.10g}",
    )
    label = f"proven epsilon at delta {delta:g}"
    if any(value > 0 for value in events.values()):
        bars = ChartSeries("bars", range(len(events)), list(events.values()))
        right = Chart(
            (bars,), ChartAxis("", tuple(events)), ChartAxis(label, ends=(0.0, None)), "Events", sideways=True
        )
    else:
        right = Chart((), ChartAxis(), ChartAxis(label), "Events", note="no event proves more than 0")
    return Figure("", (chart, right), across=2)


def membership_curve(
    alarms: Sequence[float],
    shares: Sequence[float],
    rates: Sequence[float],
    allowed: Sequence[float] | None,
) -> Figure:
    """Show the share of members that an attack finds over its false alarms, and what a claim allows."""
    series = [ChartSeries("line", alarms, shares, label="this attack")]
    if allowed is not None:
        series.insert(
            0,
            ChartSeries("line", rates, allowed, label="claimed: any attack at most", colour=RED, dashed=True),
        )
    series.append(
        ChartSeries("line", (0.0, 1.0), (0.0, 1.0), label="blind guessing", colour=GREY, dashed=True)
    )
    x, y = (ChartAxis(f"share of {what}", kind="shares") for what in ("false alarms", "members found"))
    return Figure("Who was in the training data?", (Chart(tuple(series), x, y),))


def genome_powers(
    exact: Mapping[int, float],
    theory: Mapping[int, float],
    epsilons: Sequence[float],
    noisy: Sequence[tuple[float, float, float, float]],
    *,
    blind: float,
) -> Figure:
    """Show the members found in exact frequencies, and in noisy ones: found, low, high, bound."""
    members = ChartAxis("members found", ends=(0.0, 1.05))
    chart = (
        ChartSeries("points", list(exact), list(exact.values()), label="measured", colour=RED),
        ChartSeries("line", list(theory), list(theory.values()), label="theory", colour=GREY, dashed=True),
        _blind(blind),
    )
    powers, low, high, bound = zip(*noisy, strict=True)
    right = (
        ChartSeries("points", epsilons, powers, low, high, "measured (insider)"),
        ChartSeries("bounds", epsilons, bound, label="bound", colour=GREY),
        _blind(blind),
    )
    panels = (
        Chart(chart, named_powers(list(exact), "number of SNPs", ","), members, "Exact allele frequencies"),
        Chart(right, named_powers(epsilons, "epsilon"), members, "The same frequencies from Tacit"),
    )
    return Figure("", panels, across=2)


def beacon_powers(
    random: Mapping[int, float],
    rarest: Mapping[int, float],
    curve: Sequence[MeasuredAdvantage],
    *,
    blind: float,
) -> Figure:
    """Show the members found by exact answers, and the advantage against noisy counts."""
    chart = (
        ChartSeries("joined", list(random), list(random.values()), label="random alleles", colour=ORANGE),
        ChartSeries("points", list(rarest), list(rarest.values()), label="rarest alleles", colour=RED),
        _blind(blind),
    )
    numbers = named_powers(sorted({*rarest, *random}), "number of questions", ",")
    panels = (
        Chart(chart, numbers, ChartAxis("members found", ends=(0.0, 1.08)), "A beacon that says yes or no"),
        advantage_chart(curve, "Noisy counts from Tacit", epsilon="epsilon (total cost)"),
    )
    return Figure("", panels, across=2)


def unique_people(
    unique: Mapping[int, tuple[float, float]], people: int, curve: Sequence[MeasuredAdvantage]
) -> Figure:
    """Show the share of unique people over the number of markers, and the advantage against a noisy count."""
    formula, counts = zip(*unique.values(), strict=True)
    chart = (
        ChartSeries("points", list(unique), counts, label="counted", colour=RED),
        ChartSeries("line", list(unique), formula, label="by the formula", colour=GREY, dashed=True),
    )
    markers = ChartAxis("number of markers", ticks=tuple((float(one), str(one)) for one in unique))
    share = ChartAxis("share of people", ends=(0.0, 1.08))
    panels = (
        Chart(chart, markers, share, f"Unique among {people:,} people"),
        advantage_chart(curve, "A noisy count from Tacit"),
    )
    return Figure("", panels, across=2)


def sharpened_maps(
    maps: tuple[_Grid, _Grid, _Grid, _Grid], places: npt.NDArray[np.int64], titles: tuple[str, str, str, str]
) -> Figure:
    """Show two smoothed maps, each beside what sharpening shows; circles mark the true sites."""
    panels = []
    for number, (cells, title) in enumerate(zip(maps, titles, strict=True)):
        top = float(np.quantile(cells, 0.9995))
        panel = Matrix(np.clip(cells, 0, top), title=title, top=top)
        if number % 2:
            highest = np.argsort(cells, axis=None)[::-1][: len(places)]
            attacked = np.stack(np.unravel_index(highest, cells.shape), axis=1)
            panel = replace(panel, spots=(("what the attacker finds", attacked), ("true sites", places)))
        panels.append(panel)
    return Figure("", tuple(panels), across=2)


def friendship_curves(curves: Mapping[str, Sequence[MeasuredAdvantage]], scaled: str) -> Figure:
    """Show the advantage against several counts over epsilon; the curve named `scaled` is not private."""
    colours = iter((BLUE, GREEN, ORANGE))
    points = tuple(
        advantage_points(curve, name, RED if name == scaled else next(colours))
        for name, curve in curves.items()
    )
    chart = advantage_chart(next(iter(curves.values())), "")
    return Figure(
        "Is there a friendship between two people?",
        (Chart((chart.series[0], *points), chart.x, ADVANTAGE),),
    )


def _blind(share: float) -> ChartSeries:
    return ChartSeries("across", (), (share,), label="blind guessing", colour=GREEN, dashed=True)


def recovered_pictures(rows: Mapping[str, npt.NDArray[np.float64]]) -> Figure:
    """Show one row of square pictures for each kind of update, the patients first."""
    return Figure("", tuple(_row(title, pictures) for title, pictures in rows.items()))


def _row(title: str, pictures: npt.NDArray[np.float64]) -> Matrix:
    """Return pictures side by side, with an empty line between them."""
    side = int(np.sqrt(pictures.shape[1]))
    square = side**2 == pictures.shape[1]
    shapes = [one.reshape(side, side) if square else one[None, :] for one in pictures]
    return Matrix(np.hstack([np.pad(one, ((0, 0), (0, 1))) for one in shapes])[:, :-1], title=title, top=1.0)


def update_areas(
    exact: Mapping[int, float],
    private: Mapping[float, Mapping[int, float]],
    insiders: Sequence[tuple[float, float, float]],
) -> Figure:
    """Show the areas of the simple test by patients, and the insider's: epsilon, measured, bound."""
    blind = ChartSeries("across", (), (0.5,), label="blind guessing", colour=GREEN, dashed=True)
    series = [ChartSeries("joined", list(exact), list(exact.values()), label="exact update", colour=RED)]
    for colour, (epsilon, areas) in zip((BLUE, ORANGE, GREY) * len(private), private.items(), strict=False):
        label = f"Tacit, epsilon {epsilon:g}"
        series.append(ChartSeries("joined", list(areas), list(areas.values()), label=label, colour=colour))
    epsilons, measured_areas, bounds = zip(*sorted(insiders), strict=True)
    right = (
        ChartSeries("across", (), (1.0,), label="exact update", colour=RED, dashed=True),
        ChartSeries("points", epsilons, measured_areas, label="measured against Tacit"),
        ChartSeries("bounds", epsilons, bounds, label="bound", colour=GREY),
        blind,
    )
    area = ChartAxis("area under the curve", ends=(0.4, 1.05))
    patients = named_powers(list(exact), "patients in the update")
    panels = (
        Chart((*series, blind), patients, area, "The simple test"),
        Chart(right, named_powers(epsilons, "epsilon"), area, "An attacker who knows all others"),
    )
    return Figure("", panels, across=2)
