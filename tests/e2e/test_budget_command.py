"""``tacit budget``, as a curator uses it."""

import json
import re
import shutil
import sys
from datetime import UTC, datetime
from fractions import Fraction
from types import SimpleNamespace

import pytest

from tacit import protect
from tacit.accounting import Budget, Cost
from tacit.cli import main
from tacit.errors import TacitError
from tacit.ledger import Blocks, Ledger
from tacit.tables import EXAMPLE_HOSPITALS, example_visits


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process: its status, what it printed and what it complained of."""

    def run(*words, **environment):
        for name, value in {"NO_COLOR": "1", "COLUMNS": "160", **environment}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["tacit", "budget", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return SimpleNamespace(returncode=left.value.code or 0, stdout=printed.out, stderr=printed.err)

    return run


@pytest.fixture
def path(tmp_path):
    where = tmp_path / "hospital.ledger"
    with Ledger.open(where) as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3, delta=1e-6))
        ledger.create_account("ana", parent="visits", budget=Budget(epsilon=1))
        for i in range(3):
            ledger.charge("ana", Cost.pure(0.25), who="ana", purpose=f"report {i}")
        ledger.charge(
            "visits", Cost.gaussian(sigma=20, sensitivity=1), who="\x1b[31mbob", purpose="[red]map[/]"
        )
    return where


def test_the_status_is_a_table_of_accounts(run, path):
    for words in ((path,), ("status", path), (path, "status")):
        done = run(*words)
        assert done.returncode == 0, done.stderr
        assert "visits" in done.stdout
        assert "  ana" in done.stdout
        assert "epsilon 0.25" in done.stdout
    assert "visits" in run("status", TACIT_LEDGER=str(path)).stdout


def test_the_status_for_programs_is_exact(run, path):
    found = json.loads(run("status", path, "--json").stdout)
    ana = next(one for one in found["accounts"] if one["name"] == "ana")
    assert ana["spent"]["epsilon"] == "3/4"
    assert ana["left"]["epsilon"] == "1/4"


def test_the_history_shows_who_took_what_and_no_control_characters(run, path):
    done = run("history", path)
    assert done.returncode == 0, done.stderr
    assert "report 2" in done.stdout
    assert "epsilon 0.25" in done.stdout
    assert "charged" in done.stdout
    assert "Cost" not in done.stdout
    assert "\x1b" not in done.stdout
    assert "[red]map[/]" in done.stdout
    only = json.loads(run("history", path, "--account", "ana", "--json", "--limit", "2").stdout)
    assert [entry["purpose"] for entry in only] == ["report 1", "report 2"]


@pytest.mark.parametrize("columns", [50, 60, 80])
def test_the_history_cuts_no_word_in_a_narrow_terminal(run, path, columns):
    with Ledger.open(path) as ledger:
        ledger.charge("visits", Cost.pure(0.125), who="bob", asked="n = count, by department, of admissions")
    shown = run("history", path, COLUMNS=str(columns)).stdout
    assert max(map(len, shown.splitlines())) <= columns
    words = " ".join(shown.split())
    assert "charged: n = count, by department, of admissions account visits; epsilon 0.125; who: bob" in words
    assert "purpose: report 2" in words
    assert "\x1b" not in shown


def test_the_history_shows_what_an_answer_promised(run, tmp_path):
    visits = protect(
        example_visits(), name="visits", unit="patient_id", limits={"rows": 5},
        keys={"hospital": EXAMPLE_HOSPITALS, "icd": list("ABCDEFGH")}, bounds={"age": (0, 90)},
        budget=Budget(epsilon=8, delta=1e-5), ledger=tmp_path / "v.ledger",
    )  # fmt: skip
    visits.crosstabs(["hospital", "icd", "age"], up_to=3, bins={"age": 9}).plan(
        epsilon=1, delta=1e-6
    ).release()
    visits.crosstabs(["hospital"]).plan(rho=0.01).release()
    text = run("history", tmp_path / "v.ledger").stdout
    assert re.search(r"7 cross tables, .* epsilon 1, delta 1e-06; charged as rho 0\.0", text), text
    assert re.search(r"1 cross table, by hospital, .*  rho 0\.01 ", text), text


def test_the_history_shows_a_run_as_one_line(run, path):
    with Ledger.open(path) as ledger:
        daily = ledger.run(
            "ana", Cost.pure(0.125), plan="daily", instalments=365, who="ana", asked="daily counts"
        )
        for _ in range(3):
            daily.draw(lambda number, secret: (b"about 40", b"a secret"))
        ledger.create_account("ben", parent="visits", budget=Budget(epsilon=1))
        ledger.run("ben", Cost.pure(0.125), plan="daily", instalments=365)
    for words in ((), ("--account", "ana")):
        shown = run("history", path, *words).stdout
        assert "run charged: daily counts (365 instalments, 3 stored)" in shown
        assert "answer stored" not in shown
    assert "run charged: daily counts (365 instalments)" in run("history", path, "--account", "visits").stdout
    assert "run seen (365 instalments)" in run("history", path, "--account", "ben").stdout
    entries = json.loads(run("history", path, "--account", "ana", "--json").stdout)
    assert [one["part"] for one in entries if one["kind"] == "release"] == [1, 2, 3]
    assert "a secret" not in run("export", path).stdout


def test_the_burn_down_is_a_chart_and_a_picture(run, path, tmp_path):
    picture = tmp_path / "burn.png"
    done = run("burn-down", path, "--account", "ana", "--plot", picture)
    assert done.returncode == 0, done.stderr
    assert "█" in done.stdout
    assert done.stdout.count("25.0 %") == 1  # the last line is not repeated
    assert picture.read_bytes().startswith(b"\x89PNG")
    points = json.loads(run("burn-down", path, "--account", "ana", "--json").stdout)
    assert [point["left"] for point in points] == [1, 0.75, 0.5, 0.25]


def test_verify_says_yes_or_no_by_its_exit_status(run, path, tmp_path):
    done = run("verify", path)
    assert done.returncode == 0
    assert "completeness not proven" in done.stdout
    assert "The latest entries could still have been cut off" in " ".join(done.stdout.split())
    witness = tmp_path / "elsewhere"
    shutil.copy(f"{path}.witness", witness)
    assert "consistent and complete up to entry 6" in run("verify", path, "--witness", witness).stdout
    old = tmp_path / "old"
    shutil.copy(path, old)
    with Ledger.open(path) as ledger:
        ledger.charge("ana", Cost.pure(0.1))
    shutil.copy(old, path)
    done = run("verify", path)
    assert done.returncode == 3
    assert "NOT consistent" in done.stdout
    assert json.loads(run("verify", path, "--json").stdout)["ok"] is False


def test_export_is_json_lines(run, path, tmp_path):
    lines = run("export", path).stdout.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert run("export", path, "--to", tmp_path / "log.jsonl").returncode == 0
    assert (tmp_path / "log.jsonl").read_text().splitlines() == lines


@pytest.mark.parametrize("command", ["status", "history", "burn-down", "verify", "export"])
def test_what_is_no_ledger_is_refused_with_status_2_and_nothing_is_made(run, tmp_path, command):
    done = run(command, tmp_path / "nothing.ledger")
    assert done.returncode == 2
    assert "code: not-a-ledger" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_account_is_refused_with_status_2(run, path):
    done = run("history", path, "--account", "nobody")
    assert done.returncode == 2
    assert "code: unknown-account" in done.stderr


def test_without_a_ledger_the_one_of_the_config_is_shown(run, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nothing = run()
    assert nothing.returncode == 2
    assert "fix: tacit budget path/of/tacit.ledger" in nothing.stderr
    facts = 'source = "v.csv"\nunit = "patient_id"\nbudget = {epsilon = 1}\n'
    (tmp_path / "tacit.toml").write_text(f'ledger = "{path}"\n[datasets.visits]\n{facts}')
    for words in ((), ("status",), ("history",), ("verify",)):
        done = run(*words)
        assert done.returncode == 0, done.stderr
        assert done.stdout == run(*words, path).stdout
    (tmp_path / "tacit.toml").write_text(f"[datasets.visits]\n{facts}")
    assert "declares no ledger" in run().stderr


SAID = ("--statement", "decision 12", "--who", "data board")


def test_an_account_is_frozen_and_unfrozen_by_its_curator(run, path):
    done = run("freeze", path, "--account", "visits", *SAID)
    assert done.returncode == 0, done.stderr
    assert "froze visits" in done.stdout
    assert "frozen" in run(path).stdout
    with Ledger.open(path) as ledger, pytest.raises(TacitError, match="account-frozen"):
        ledger.charge("ana", Cost.pure(0.1))
    assert (
        json.loads(run("unfreeze", path, "--account", "visits", *SAID, "--json").stdout)["account"]
        == "visits"
    )
    with Ledger.open(path) as ledger:
        ledger.charge("ana", Cost.pure(0.1))
    told = run("history", path).stdout
    assert "frozen" in told
    assert "unfrozen" in told
    assert "decision 12" in told


def test_the_last_day_is_changed_by_its_curator(run, path):
    done = run("expires", path, "--account", "ana", "--on", "2090-12-31", *SAID)
    assert "until the end of 2090-12-31" in done.stdout, done.stderr
    assert "last day 2090-12-31 (UTC)" in run(path).stdout
    assert "never expires" in run("expires", path, "--account", "ana", "--on", "never", *SAID).stdout
    wrong = run("expires", path, "--account", "ana", "--on", "31.12.2090", *SAID)
    assert (wrong.returncode, "--on 2030-12-31" in wrong.stderr) == (2, True)
    assert "last day changed: 2090-12-31" in run("history", path).stdout
    assert "last day changed: none" in run("history", path).stdout
    past = run("expires", path, "--account", "ana", "--on", "2020-01-01", *SAID)
    assert "ana has expired (its last day was 2020-01-01)" in past.stdout, past.stderr


def test_an_expiry_within_a_day_is_shown_with_its_hour(run, path):
    moment = datetime(2090, 12, 31, 15, 30, tzinfo=UTC)
    with Ledger.open(path) as ledger:
        ledger.set_expiry("ana", moment, statement="decision 12", who="data board")
    assert "last day 2090-12-31 15:30 (UTC)" in run(path).stdout


def test_the_history_shows_the_budgets_that_the_curator_set(run, path):
    run("grow", path, "--account", "ana", "--epsilon", "2", *SAID)
    shown = run("history", path).stdout
    assert "account opened: epsilon 3, delta 1e-6" in shown
    assert "budget raised: epsilon 2" in shown


def test_the_first_account_may_be_one_that_datasets_share(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    facts = 'source = "v.csv"\nunit = "patient_id"\nparent = "hospital"\nbudget = {epsilon = 1}\n'
    (tmp_path / "tacit.toml").write_text(f'ledger = "new.ledger"\n[datasets.visits]\n{facts}')
    wrong = run("open", "--account", "ana", "--parent", "visits", "--epsilon", "1")
    assert (wrong.returncode, "not-a-ledger" in wrong.stderr) == (2, True)
    done = run("open", "--account", "hospital", "--unit", "patient_id", "--epsilon", "3")
    assert "opened hospital: epsilon 3" in done.stdout, done.stderr


def test_a_total_is_started_again_by_its_curator(run, path):
    done = run("refresh", path, "--account", "ana", *SAID)
    assert "left: epsilon 1 of 1" in done.stdout, done.stderr


def test_an_account_that_datasets_share_is_opened_with_its_unit(run, path):
    done = run("open", path, "--account", "hospital", "--unit", "patient_id", "--epsilon", "5")
    assert "opened hospital:" in done.stdout, done.stderr
    neither = run("open", path, "--account", "clinic", "--epsilon", "5")
    assert (neither.returncode, "--unit COLUMN" in neither.stderr) == (2, True)


def test_a_ledger_that_lost_entries_goes_on_with_nothing_left(run, path, tmp_path):
    shutil.copy(path, tmp_path / "backup")
    with Ledger.open(path) as ledger:
        for _ in range(2):
            ledger.charge("ana", Cost.pure(0.1))
    shutil.copy(tmp_path / "backup", path)
    assert "accepts no charges" in run(path).stdout
    assert "does not contain entry" in json.loads(run(path, "--json").stdout)["refusal"]
    refused = run("grow", path, "--account", "ana", "--epsilon", "2", *SAID)
    assert refused.returncode == 2
    assert "tacit budget continue-from-backup" in " ".join(refused.stderr.split())
    done = run("continue-from-backup", path, *SAID, "--none-opened")
    assert done.returncode == 0, done.stderr
    assert "the ledger continues after entry 6" in done.stdout
    assert "nothing of epsilon 3" in run(path).stdout
    assert "continued from a backup" in run("history", path).stdout
    assert run("burn-down", path).stdout.rstrip().endswith("0.0 %")
    assert run("verify", path).returncode == 0
    again = run("continue-from-backup", path, *SAID, "--json")
    assert (again.returncode, json.loads(again.stdout)["error"]["code"]) == (2, "bad-parameter")


def test_a_long_history_is_shown_in_pages(run, path):
    with Ledger.open(path) as ledger:
        ledger.draw("visits", Cost.pure(0.1), plan="p", compute=lambda _: b"1", purpose="drawn")
        for i in range(9):
            ledger.charge("visits", Cost.pure(0.01), purpose=f"late {i}")
    seen, after = [], 0
    while True:
        page = json.loads(run("history", path, "--after", after, "--limit", "5", "--json").stdout)
        if not page:
            break
        seen += page
        after = page[-1]["seq"]
    assert [entry["seq"] for entry in seen] == list(range(1, 18))
    first = run("history", path, "--after", "6", "--limit", "3").stdout
    assert "drawn" in first
    assert "late 1" in first
    assert "late 2" not in first
    assert "more: --after 10" in first  # the stored answer, entry 8, is not shown
    assert "more" not in run("history", path, "--after", "14").stdout
    latest = run("history", path, "--limit", "2").stdout
    assert "late 7" in latest
    assert "late 6" not in latest


def test_the_latest_entries_are_found_however_much_lies_before_them(run, path, monkeypatch):
    with Ledger.open(path) as ledger:
        for i in range(60):
            ledger.charge("visits", Cost.pure(0.001), purpose=f"late {i}")
    read = []
    honest = Ledger.history
    monkeypatch.setattr(
        Ledger, "history", lambda self, *a, **k: read.extend(found := honest(self, *a, **k)) or found
    )
    told = run("history", path, "--limit", "2").stdout
    assert "late 59" in told
    assert len(read) < 20
    assert "report 2" in run("history", path, "--limit", "1", "--account", "ana").stdout


def test_the_fullest_blocks_are_shown(run, tmp_path):
    where = tmp_path / "days.ledger"
    with Ledger.open(where) as ledger:
        ledger.create_account("visits", unit="row", budget=Budget(epsilon=1), blocks=Blocks("day"))
        for day in range(6):
            ledger.charge("visits", Cost.pure(Fraction(day + 1, 10)), blocks=[f"2026-01-0{day}"])
    shown = run("status", where).stdout
    assert "day 2026-01-05" in shown
    assert "epsilon 0.4 of 1" in shown
    assert "day 2026-01-02" not in shown
    assert "3 more that were charged" in shown
    assert re.search(r"any other day +epsilon 1 of 1", shown)
    assert re.search(r"all of the data +epsilon 0.4 of 1", shown)
    assert not re.search(r"visits .*epsilon", shown)  # no total on the account's line reads as "spent"
    assert "all of the data" in run("burn-down", where).stdout
    (found,) = json.loads(run("status", where, "--json").stdout)["accounts"]
    assert [one["block"] for one in found["fullest"]] == [f"2026-01-0{day}" for day in (5, 4, 3, 2, 1, 0)]
    assert found["fullest"][0]["left"]["epsilon"] == "2/5"
    assert "(block 2026-01-05)" in run("history", where).stdout
    points = json.loads(run("burn-down", where, "--json").stdout)
    assert [round(point["left"], 3) for point in points] == [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4]


def test_what_is_left_is_shown_in_charges_like_the_latest_one(run, tmp_path):
    where = tmp_path / "training.ledger"
    step = Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)
    with Ledger.open(where) as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=3, delta=1e-6))
        assert "or more like the latest" not in run("status", where).stdout
        ledger.charge("visits", Cost.pure(0.1))
        ledger.charge("visits", step)
        left = ledger.account("visits").filter.how_many(step)
    assert left > 1000
    shown = run("status", where).stdout
    assert "or more like the latest" in shown
    assert f"{left:,}" in shown
    (found,) = json.loads(run("status", where, "--json").stdout)["accounts"]
    assert found["more_like_the_last"] == left


def test_the_history_shows_what_each_charge_promised(run, tmp_path):
    where = tmp_path / "promises.ledger"
    with Ledger.open(where) as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1, delta=1e-6))
        noise, promise = Cost.gaussian(sigma=9, sensitivity=1), Budget(epsilon=0.5, delta=1e-7)
        ledger.charge("visits", noise, promise=promise)
    shown = " ".join(run("history", where).stdout.split())
    assert "epsilon 0.5, delta 1e-07; charged as rho 0.00617284" in shown
    charge = json.loads(run("history", where, "--json").stdout)[-1]
    assert charge["spend"]["promise"] == ["1/2", "1/10000000"]
    status = " ".join(run("status", where).stdout.split())
    assert "one more question of up to epsilon 0.5" in status
