"""What a cost means: every figure a user can check by hand."""

import json
import math
from decimal import Decimal

import pytest

import tacit as tc
from tacit.explain import (
    DEPLOYMENTS,
    Question,
    believe,
    rate_distortion,
    small_crowd,
    tradeoff,
    what_a_budget_buys,
)
from tacit.explain._odds import best_test
from tacit.explain._rounding import at_least, at_most, number_up, shown_odds
from tacit.explain._text_chart import draw_curve

PURE = tc.Cost.pure(0.5)
GAUSSIAN = tc.Cost.gaussian(sigma=4, sensitivity=1)


def test_the_room_is_also_its_function():
    import tacit.explain as room
    from tacit.explain import explain

    assert tc.explain is room
    assert tc.explain(PURE).sentence == explain(PURE).sentence == room.explain(PURE).sentence


def test_the_odds_sentence():
    assert tc.explain(PURE).sentence == (
        "An attacker who gave 50:50 odds that you are in the data can reach at most 62:38 (62.3 %)."
    )


def test_a_small_epsilon_hardly_moves_the_odds():  # WORKED_EXAMPLES 2
    text = str(tc.explain(tc.Cost.pure(0.01)))
    assert "1.0101 times as likely" in text  # 1.01005, rounded up


def test_bits():  # WORKED_EXAMPLES 3
    assert round(tc.explain(tc.Cost.pure(0.1)).bits, 4) == 0.1443


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 5])
@pytest.mark.parametrize("prior", [0.001, 0.1, 0.5, 0.99])
def test_posterior_odds_are_prior_odds_times_the_factor(epsilon, prior):  # WORKED_EXAMPLES 6
    belief = tc.explain(tc.Cost.pure(epsilon), priors=[prior]).beliefs[0]
    for after, sign in ((belief.at_most, 1), (belief.at_least, -1)):
        assert after / (1 - after) == pytest.approx(prior / (1 - prior) * math.exp(sign * epsilon), rel=1e-9)


def test_a_family_of_five():  # WORKED_EXAMPLES 25
    (family,) = tc.explain(tc.Cost.pure(0.1), families=[5]).families
    assert family.epsilon == pytest.approx(0.5)
    assert family.epsilon >= 0.5


def test_the_best_test_obeys_both_sides():
    for fpr, tpr in tc.explain(tc.Cost.pure(1)).tests:
        assert tpr == pytest.approx(min(math.e * fpr, 1 - (1 - fpr) / math.e))


def test_the_best_test_against_gaussian_noise_is_near_the_truth():
    """For N(0,1) against N(mu,1) the best test is known; ours is at or just above it."""
    from scipy.stats import norm

    for fpr in (0.001, 0.01, 0.05, 0.2, 0.5, 0.9):
        truth = norm.sf(norm.isf(fpr) - 0.25)
        assert truth - 1e-12 <= best_test(GAUSSIAN)(fpr) <= truth + 0.003


@pytest.mark.parametrize("cost", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
def test_blind_guessing_is_never_beaten_by_more_than_the_advantage(cost):
    power = best_test(cost)
    for step in range(1, 20):
        fpr = step / 20
        assert fpr <= power(fpr) <= fpr + float(cost.advantage) + 1e-12


def test_with_a_delta_the_exception_is_named():
    meaning = tc.explain(GAUSSIAN, delta=1e-6)
    assert not meaning.pure
    assert meaning.beliefs == ()
    assert meaning.bits is None
    assert meaning.sentence.startswith("Except with probability 1e-06, the odds move by at most a factor of ")
    for limit in meaning.limits:
        assert float(GAUSSIAN.loss_exceeds(limit.loss)) <= limit.probability
        assert float(GAUSSIAN.loss_exceeds(limit.loss - 1e-4)) > limit.probability


def test_the_exception_is_not_delta():
    """At the epsilon read at delta, the odds move further with a larger probability than delta."""
    meaning = tc.explain(GAUSSIAN, delta=1e-6)
    assert float(GAUSSIAN.loss_exceeds(meaning.epsilon)) > 1e-6
    assert meaning.limits[-1].loss > meaning.epsilon


def test_a_mechanism_that_leaks_everything_sometimes_is_called_by_its_name():  # WORKED_EXAMPLES 7
    meaning = tc.explain(tc.Cost.approximate(0.5, 0.05), delta=0.06)
    assert [limit.loss is None for limit in meaning.limits] == [False, True, True]
    assert "no limit" in str(meaning)
    assert meaning.sentence.startswith("Except with probability 0.06,")
    assert not meaning.pure


def test_budgets_and_mechanisms_are_explained_too():
    assert tc.explain(tc.Budget(epsilon=0.5)).sentence == tc.explain(PURE).sentence
    assert tc.explain(tc.mechanisms.DiscreteLaplace(epsilon=0.5, sensitivity=1)).epsilon == 0.5
    rho = tc.explain(tc.Budget(rho=0.1), delta=1e-6)
    assert rho.epsilon == float(tc.Cost.zcdp(0.1).epsilon(delta=1e-6))
    both = tc.explain(tc.Budget(epsilon=1, delta=1e-9), delta=1e-6)
    assert both.epsilon <= 1


def test_many_pure_queries_are_far_better_than_their_epsilon_but_for_rare_cases():
    many = 100 * tc.Cost.discrete_laplace(scale=10, sensitivity=1)
    meaning = tc.explain(many)
    assert meaning.pure
    assert meaning.epsilon == pytest.approx(10)
    assert [limit.probability for limit in meaning.limits] == [1e-2, 1e-4, 1e-6]
    for limit in meaning.limits:
        assert limit.loss < 6
        assert many.loss_exceeds(limit.loss) <= limit.probability
    assert tc.explain(PURE).limits == ()


def test_revealing_nothing_can_be_explained():
    meaning = tc.explain(tc.Cost.zero(), budget=tc.Budget(epsilon=1))
    assert meaning.sentence.endswith("at most 50:50.")
    assert meaning.fits >= 2**39


def _stays(folder, rows):
    (folder / "v.csv").write_text("patient_id,stay\n1,3\n2,5\n3,8\n")
    return tc.protect(
        folder / "v.csv",
        unit="patient_id",
        bounds={"stay": (0, 30)},
        limits=tc.Limits(rows=rows),
        budget=tc.Budget(epsilon=3),
    )


def test_plans_releases_and_certificates_are_explained_too(tmp_path):
    visits = _stays(tmp_path, rows=2)
    plan = visits.agg(n=tc.count(), stay=tc.mean("stay")).plan(epsilon=0.5)
    meaning = tc.explain(plan)
    assert meaning.sentence == tc.explain(PURE).sentence
    assert [one.column for one in meaning.forecasts] == ["n", "stay"]
    assert "count()" in str(meaning)
    json.dumps(meaning.to_dict(), allow_nan=False)
    release = plan.release()
    assert tc.explain(release).sentence == tc.explain(release.certificate).sentence == meaning.sentence


def test_a_release_of_parts_says_why_it_gives_less_than_its_epsilon(tmp_path):
    visits = _stays(tmp_path, rows=4)
    plan = visits.agg(n=tc.count(), stay=tc.mean("stay")).plan(epsilon=1)
    meaning = tc.explain(plan.release().certificate)
    text = " ".join(str(meaning).split())
    assert "by more than 24.50%" in text
    assert "Epsilon 1 alone would allow 46.22%" in text
    assert "made of 2 parts of epsilon 1/2." in text
    assert meaning.counts == (("number of rows", plan.columns[0].error),)  # its own error, +/- 24
    assert "number of rows +/- 24" in text
    assert "what it buys" not in text
    page = meaning.html_report()
    assert "For comparison: any release with the epsilon" in page
    assert '"question": null' in page
    asked = tc.explain(plan.release(), question=Question("count"))
    assert "what it buys: count" in str(asked)


def test_why_an_advantage_is_less_is_said_only_where_it_is():
    assert "alone" not in str(tc.explain(PURE))
    assert "alone" not in str(tc.explain(GAUSSIAN))
    assert "For comparison" not in tc.explain(PURE).html_report()
    several = " ".join(str(tc.explain(tc.Cost.pure(0.25) + 3 * tc.Cost.pure(0.5))).split())
    assert "made of 1 part of epsilon 1/4 and 3 parts of epsilon 1/2." in several
    known = " ".join(str(tc.explain(2 * tc.Cost.discrete_laplace(scale=2, sensitivity=1))).split())
    assert "the noise is known" in known


@pytest.mark.parametrize(
    "mechanisms",
    [
        None,
        7,
        ["x"],
        [{"statistic": "rows", "law": "laplace", "scale": "0"}],
        [{"statistic": "rows", "law": "laplace", "scale": "-1"}],
    ],
)
def test_the_counts_of_a_certificate_by_another_hand_are_left_out(mechanisms):
    empty = dict.fromkeys(("dataset", "filter", "plan", "software", "ledger"))
    fields = {**empty, "schema": "tacit/certificate/1", "cost": PURE.to_json(), "mechanisms": mechanisms}
    assert tc.explain(tc.Certificate(fields)).counts == ()


def test_how_often_a_budget_pays():
    assert tc.explain(PURE, budget=tc.Budget(epsilon=3)).fits == 6
    assert tc.explain(tc.Cost.pure(0.1), budget=tc.Budget(epsilon=1)).fits == 10
    assert tc.explain(PURE, budget=tc.Budget(epsilon=0.4)).fits == 0
    assert tc.explain(GAUSSIAN, budget=tc.Budget(epsilon=3)).fits == 0
    assert tc.explain(GAUSSIAN, budget=tc.Budget(rho=1)).fits == 32  # rho = 1/32 each


def test_every_explanation_shows_itself_everywhere():
    from rich.console import Console

    for cost in (PURE, GAUSSIAN, tc.Cost.zcdp(0.5), tc.Cost.approximate(1, 1e-8)):
        meaning = tc.explain(cost)
        assert "groups and families" in str(meaning)
        assert "<table" in meaning._repr_html_()
        json.dumps(meaning.to_dict(), allow_nan=False)
        assert meaning.plot()._repr_png_().startswith(b"\x89PNG")
        console = Console(width=100)
        with console.capture() as said:
            console.print(meaning)
        assert "groups and families" in said.get()
        page = meaning.html_report()
        assert "http://" not in page.replace("http://www.w3.org", "")
        assert "https://" not in page
        assert "@" not in page.split("<style>")[0] + page.split("</style>")[1]


def test_saved_pages_are_complete(tmp_path):
    tc.explain(PURE).save_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").rstrip().endswith("</html>")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: tc.explain(3),
        lambda: tc.explain("epsilon"),
        lambda: tc.explain(PURE, priors=[0]),
        lambda: tc.explain(PURE, priors=[1]),
        lambda: tc.explain(PURE, families=[0]),
        lambda: tc.explain(GAUSSIAN, delta=0),
        lambda: tc.explain(GAUSSIAN, delta=1),
        lambda: Question("median"),
        lambda: Question("mean", bounds=(0, 1)),
        lambda: Question("sum", n=3),
        lambda: Question("sum", n=3, bounds=(1, 1)),
        lambda: Question("sum", n=3, bounds=(1, float("inf"))),
        lambda: Question("sum", n=3, bounds=5),
        lambda: tradeoff("count", error=0),
        lambda: tradeoff("count", error=1, confidence=1),
        lambda: rate_distortion([]),
        lambda: small_crowd(epsilon=0),
        lambda: what_a_budget_buys({}, epsilon=1),
        lambda: what_a_budget_buys({"a": Question("count")}, epsilon=1),
        lambda: what_a_budget_buys({"a": Question("count", 5)}, epsilon=1, weights={"b": 2}),
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(tc.TacitError) as refusal:
        wrong()
    assert refusal.value.code == "bad-parameter"
    assert str(refusal.value.fix)


def test_a_salary_without_bounds_asks_for_them():  # WORKED_EXAMPLES 13
    with pytest.raises(tc.TacitError, match="needs bounds") as refusal:
        Question("sum", n=100)
    assert "bounds=" in str(refusal.value.fix)


def test_sensitivities():  # WORKED_EXAMPLES 8, 9, 12
    assert Question("count").sensitivity == 1
    assert float(Question("mean", n=500, bounds=(0, 8)).sensitivity) == 0.016
    assert float(Question("mean", n=5000, bounds=(80, 200)).sensitivity) == 0.024
    assert Question("sum", bounds=(-40, 30)).sensitivity == 40


def test_which_epsilon_do_i_need():
    answer = tradeoff("mean", n=5000, bounds=(80, 200), error=1)
    assert answer.epsilon == pytest.approx(0.024 * math.log(20), rel=1e-4)
    assert answer.textbook == pytest.approx(0.024 * math.log(20), rel=1e-12)
    again = tc.mechanisms.Laplace(epsilon=answer.epsilon, sensitivity=answer.question.sensitivity)
    assert again.error(0.95) <= 1
    assert "X" in answer.chart()


def test_the_count_needs_whole_noise():
    answer = tradeoff("count", error=5)
    counted = tc.mechanisms.DiscreteLaplace(epsilon=answer.epsilon, sensitivity=1)
    assert counted.error(0.95) <= 5
    slightly_less = tc.mechanisms.DiscreteLaplace(epsilon=answer.epsilon * (1 - 1e-4), sensitivity=1)
    assert slightly_less.error(0.95) > 5


def test_error_falls_with_epsilon_and_n():
    answer = tradeoff("mean", n=5000, bounds=(80, 200), error=1)
    assert [error for _, error in answer.curve] == sorted((error for _, error in answer.curve), reverse=True)
    by_n = dict(answer.crowd)
    assert by_n[2500] == pytest.approx(2 * by_n[5000], rel=1e-3)


def test_halving_epsilon_quadruples_the_squared_error():  # WORKED_EXAMPLES 18
    half, whole = rate_distortion([0.05, 0.1]).points
    assert half.textbook_mse / whole.textbook_mse == pytest.approx(4)
    assert whole.textbook_mse == pytest.approx(2 / 0.1**2)
    assert half.mse / whole.mse == pytest.approx(4, rel=2e-3)


def test_kl_times_mse_tends_to_one():  # WORKED_EXAMPLES 4
    (point,) = rate_distortion([0.001]).points
    assert point.textbook_kl == pytest.approx(0.001 + math.expm1(-0.001), rel=1e-6)
    assert point.textbook_kl * point.textbook_mse == pytest.approx(1, abs=1e-3)
    assert point.kl * point.mse == pytest.approx(1, abs=1e-3)


def test_two_people_are_too_small_a_crowd():  # WORKED_EXAMPLES 22
    crowd = small_crowd(truth=100, bound=100, epsilon=0.5)
    assert crowd.useless_textbook == pytest.approx(math.exp(-0.5))
    assert crowd.useless == pytest.approx(math.exp(-0.5), abs=1e-5)
    enough = small_crowd(truth=100, bound=100, epsilon=crowd.needed)
    assert enough.useless <= 0.05


def test_a_budget_is_divided_so_that_the_next_cent_is_worth_the_same_everywhere():
    questions = {
        "all": Question("count", 20_000),
        "rare": Question("count", 300),
        "sum": Question("sum", 50, (0, 9)),
    }
    best = what_a_budget_buys(questions, epsilon=2, weights={"rare": 3})
    assert sum(one.epsilon for one in best.purchases) == pytest.approx(2)
    assert best.total < best.equal_split
    weights = {"all": 1, "rare": 3, "sum": 1}
    prices = [weights[one.name] * one.relative / one.epsilon for one in best.purchases]
    assert prices == pytest.approx([best.price] * 3)
    assert sum(weights[one.name] * one.relative for one in best.purchases) == pytest.approx(best.total)


def test_published_figures_agree_with_our_own_arithmetic():
    by_name = {one.name: one for one in DEPLOYMENTS}
    census = by_name["US Census 2020: redistricting, persons"]
    assert float(tc.Cost.zcdp(census.rho).epsilon(delta=census.delta)) == pytest.approx(
        census.epsilon, abs=0.03
    )  # rho is published to 0.01
    one_report = by_name["Google: Chrome RAPPOR, one report"].epsilon
    f, p, q, h = 1 / 2, 1 / 2, 3 / 4, 2
    yes, no = f * (p + q) / 2 + (1 - f) * q, f * (p + q) / 2 + (1 - f) * p
    assert one_report == pytest.approx(h * math.log(yes * (1 - no) / (no * (1 - yes))), abs=1e-4)
    assert by_name["Google: Chrome RAPPOR, all reports"].epsilon == pytest.approx(4 * math.log(3), abs=1e-4)
    assert all(one.unit and one.source and (one.epsilon or one.rho) for one in DEPLOYMENTS)


def test_bounds_are_shown_rounded_outwards():
    assert at_most(0.244918) == "24.50%"
    assert at_least(0.377541) == "37.75%"
    assert at_most(0.5) == at_least(0.5) == "50.00%"
    assert number_up(0.72134752) == "0.7214"
    assert [shown_odds(chance) for chance in (0.5, 0.9933, 0.99995, 1e-6)] == [
        "50:50",
        "99.4:0.6",
        "99.995:0.005",
        "0.0001:99.9999",
    ]


@pytest.mark.parametrize(
    "epsilon", [1e-6, 0.004, 0.01, 0.1, 0.2, 0.3, 0.5, 1, 2.5, 2.94, 2.95, 3, 5, 7, 20, 30]
)
def test_the_odds_are_never_shown_smaller_than_they_are(epsilon):
    reached = believe(0.5, epsilon).at_most
    shown = shown_odds(reached)
    odds, _, percents = shown.partition(" (")
    yes, no = (Decimal(side) for side in odds.split(":"))
    assert yes + no == 100
    stated = Decimal(percents.removesuffix(" %)")) if percents else yes
    assert reached - 1e-14 <= float(stated) / 100 < 1
    assert float(stated) / 100 - reached <= max(0.001, 0.5 * (reached - 0.5))
    assert yes > 50  # no epsilon leaves even odds even


def test_odds_that_are_whole_need_no_decimals():
    assert [shown_odds(chance) for chance in (0.5, 0.55, 0.75, 1)] == ["50:50", "55:45", "75:25", "100:0"]
    assert shown_odds(0.627) == "63:37 (62.7 %)"
    assert shown_odds(believe(0.5, 0.01).at_most) == "50.3:49.7"
    assert shown_odds(believe(0.5, 50).at_most) == "100:0"


def test_a_wanted_error_says_that_it_counts_one_row_per_person():
    mean = str(tradeoff("mean", n=5000, bounds=(0, 30), error=1))
    assert "One row per person is assumed." in mean
    assert "tacit plan SQL --within 1 --size 5000" in mean.replace("\n", " ")
    assert "--size" not in str(tradeoff("count", error=1))


@pytest.mark.parametrize("value", [1e-9, 0.1234567, 0.99999, 1.000001, 9.99999, 12345.678])
def test_numbers_rounded_up_are_not_below(value):
    assert value * (1 - 1e-12) <= float(number_up(value)) <= value * 1.002


def test_beliefs_survive_extremes():
    assert believe(0.5, 1000).at_most == 1
    assert believe(0.5, 1000).at_least == pytest.approx(0, abs=1e-300)
    assert believe(1e-12, 0).at_most == pytest.approx(1e-12)


def test_a_flat_curve_can_be_drawn():
    assert "*" in draw_curve([1, 2], [3, 3], xlabel="x", ylabel="y")
