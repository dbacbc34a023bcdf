"""What others see of a draw does not depend on how long it takes; see docs/proofs/service_timing.md."""

import pytest

from tacit.engines import DuckDB

TICK = 0.5


def quiet(drawing):
    """Wait until every draw sleeps or has its outcome."""
    flights, clock = drawing.runner._flights, drawing.clock
    drawing.until(lambda: not any(moment <= clock.time for moment in clock.asleep))
    drawing.until(lambda: sum(not one.written for one in list(flights.values())) <= len(clock.asleep))


def transcript(ward, first):
    """Ask one question and, at each boundary after it, another one; note all that ana and ben can see."""
    drawing, seen = ward.drawing, []
    sql = "SELECT COUNT(*) AS n FROM visits WHERE age > "
    ledger = ward.service.ledger
    before = [ledger.account(name).spent.epsilon for name in (ward.accounts["ben"], "visits")]
    asked = [ward.ask(sql=f"{sql}{first}", epsilon="1/100").json()["query"]]
    drawing.admit()
    start = drawing.clock.time
    for quarter in range(1, 40):
        quiet(drawing)
        spent = [ledger.account(name).spent.epsilon for name in (ward.accounts["ben"], "visits")]
        card = ward.call(
            "POST", "/api/v1/plans", ward.tokens["ana"],
            json={"dataset": "visits", "sql": f"{sql}{first}", "epsilon": "1/100"},
        ).json()  # fmt: skip
        seen.append((
            [ward.get(f"/queries/{one}", who).json()["state"] for one in asked for who in ("ana", "ben")
             if ward.get(f"/queries/{one}", who).status_code == 200],
            [float(now - then) for now, then in zip(spent, before, strict=True)],
            card["stored"],
        ))  # fmt: skip
        if quarter % 4 == 3 and len(asked) < 6:
            number = first + len(asked)
            asked.append(ward.ask("ben", sql=f"{sql}{number}", epsilon="1/100").json()["query"])
        drawing.move(start + quarter * TICK / 4)
    rows = ward.service.database.rows("SELECT id, query, person FROM releases")
    who = {ward.people["ana"]: "ana", ward.people["ben"]: "ben"}
    numbers = {
        row["query"]: ward.get(f"/releases/{row['id']}", who[row["person"]]).json()["charged"][0]["entry"]
        for row in rows
    }
    return seen, [numbers[one] - numbers[asked[0]] for one in asked]


@pytest.mark.parametrize("seconds", [0.3, 1.0, 1.1])
def test_what_others_see_does_not_depend_on_how_long_a_draw_takes(ward, monkeypatch, seconds):
    """States, balances, whether an answer is stored, and the numbers of entries in certificates are equal."""
    quick = transcript(ward, 10)
    before, slow = DuckDB.integers, []

    def integers(engine, *given):
        if not slow:
            slow.append(ward.drawing.clock.time)
            ward.drawing.clock.sleep_until(slow[0] + seconds)
        return before(engine, *given)

    monkeypatch.setattr(DuckDB, "integers", integers)
    late = transcript(ward, 30)
    assert slow
    assert late == quick
    assert quick[0][-1][0] == ["finished"] * 6


def test_a_ledger_that_stores_at_once_would_tell(ward, monkeypatch):
    """The transcript finds the channel that the timed ledger closes: the numbers of entries."""
    from tacit.ledger import Ledger
    from tacit.service.runner._clock import TimedLedger

    monkeypatch.setattr(TimedLedger, "draw", Ledger.draw)
    quick = transcript(ward, 10)
    before, slow = DuckDB.integers, []

    def integers(engine, *given):
        if not slow:
            slow.append(ward.drawing.clock.time)
            ward.drawing.clock.sleep_until(slow[0] + 1.2)
        return before(engine, *given)

    monkeypatch.setattr(DuckDB, "integers", integers)
    assert transcript(ward, 30)[1] != quick[1]
