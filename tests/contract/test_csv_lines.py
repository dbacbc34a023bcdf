r"""What one line of a CSV file does to the others is nothing, or the file is refused by its form.

Files of ten people, well formed, with cells of every hostile kind. One line is then changed in any way: bytes
are inserted, removed or replaced, or the line is a piece of garbage. Either the file is refused before a
charge, or all other lines are read as before. The reader without the check fails this search.
"""

from __future__ import annotations

import csv
import io
import random
from collections import Counter
from typing import TYPE_CHECKING

import duckdb
import pytest

import tacit as tc
from tacit.engines import DuckDB, csv_file, read_source
from tacit.engines.sources import _sources as sources
from tacit.engines.sources._row_files import readable_copy
from twins import csv_reader

if TYPE_CHECKING:
    from pathlib import Path

CONNECTION = duckdb.connect()
CELLS = [
    "", "a", "7", "3,5", "x;y", 'a"b', '"', '""', "l\nm", "r\rs", "\r\n", " a ", ' "b" ', "é", "🦊", "\x00",
    "\x1ab", "=1", ",a,", ";", "#", "\\", "'", "'s", "z" * 300, "\ufeff", "NULL",
]  # fmt: skip
BYTES = [b'"', b'""', b"\n", b"\r", b"\r\n", b",", b";", b"'", b"\xff", b"\xc3", b"\x00", b"\x1a", b" ", b"x"]
PIECES = [
    b'500,"elective,4', b'"', b'",', b'x",3', b"M\xfcnchen,1", b",,,,", b"", b"\r", b'"a""', b"a" * 70_000,
    b'a"b',
]  # fmt: skip


def rows_of(draw: random.Random, count: int = 10) -> list[list[str]]:
    """Return a header and rows of hostile cells."""
    rows = [[f"p{i}", draw.choice(CELLS), draw.choice(CELLS)] for i in range(count)]
    return [["u", "v", "w"], *rows]


def lines_of(rows: list[list[str]], sign: str, end: str) -> list[bytes]:
    """Return the lines as a program that follows RFC 4180 writes them."""
    made = []
    for row in rows:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=sign, lineterminator=end).writerow(row)
        made.append(text.getvalue().encode())
    return made


def changed(draw: random.Random, line: bytes, end: bytes) -> bytes:
    """Return another line: some bytes of it differ, or it is something else altogether."""
    body = line.removesuffix(end)
    if draw.random() < 0.3:
        return draw.choice(PIECES) + end
    for _ in range(draw.randrange(1, 4)):
        at, cut = draw.randrange(len(body) + 1), draw.randrange(2)
        body = body[:at] + draw.choice(BYTES) + body[at + cut :]
    return body + end


def read(file: Path) -> Counter[tuple[object, ...]]:
    """Return all rows, as the engine reads them: in place, or from its copy with coded cells."""
    with readable_copy(read_source(file), file.with_name("copy")) as source, CONNECTION.cursor() as con:
        return Counter(con.execute(source.sql("t")).fetchall())


def worst_change(tmp_path: Path, seeds: range) -> int:
    """Return by how many rows the reading of other lines changed at most, in files that are accepted."""
    worst = accepted = 0
    for seed in seeds:
        draw = random.Random(seed)
        sign, end = draw.choice(",;\t"), draw.choice(["\n", "\r\n"])
        lines = lines_of(rows_of(draw), sign, end)
        one = draw.randrange(1, len(lines))
        file = tmp_path / "t.csv"
        file.write_bytes(b"".join(lines[:one] + lines[one + 1 :]))
        without = read(file)
        file.write_bytes(b"".join([*lines[:one], changed(draw, lines[one], end.encode()), *lines[one + 1 :]]))
        try:
            read_source(file).check_form()
        except tc.TacitError:
            continue
        accepted += 1
        worst = max(worst, sum((without - read(file)).values()))
    assert accepted > len(seeds) / 20
    return worst


def test_one_line_changes_no_other_line_or_the_file_is_refused(tmp_path: Path) -> None:
    assert worst_change(tmp_path, range(60)) == 0


@pytest.mark.long
def test_one_line_changes_no_other_line_in_many_files(tmp_path: Path) -> None:
    assert worst_change(tmp_path, range(1000, 6000)) == 0


def test_the_search_catches_a_reader_that_does_not_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "check_form", csv_reader.check_nothing)
    assert worst_change(tmp_path, range(30)) > 2


@pytest.mark.parametrize("size", [1, 7, 1 << 22])
def test_a_well_formed_file_is_accepted_and_read_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Parts may end anywhere."""
    from tacit.engines.sources import _csv_form

    monkeypatch.setattr(_csv_form, "_CHUNK", size)
    for seed in range(8):
        draw = random.Random(seed)
        sign, end = draw.choice(",;\t"), draw.choice(["\n", "\r\n"])
        _, *rows = written = rows_of(draw, 20)
        body = b"".join(lines_of(written, sign, end))
        (tmp_path / "t.csv").write_bytes(draw.choice([b"", b"\xef\xbb\xbf"]) + body)
        read_source(tmp_path / "t.csv").check_form()
        if size > 7:
            assert read(tmp_path / "t.csv") == Counter(tuple(c or None for c in row) for row in rows)


DEFECTS = {
    "a stray quotation mark": b'500,"elective,4\n',
    "a quotation mark inside a cell": b'5,6" high,4\n',
    "text behind a quoted cell": b'5,"a"b,4\n',
    "a space before a quotation mark": b'5, "a,b",4\n',
    "a byte that is not UTF-8": b"5,M\xfcnchen,4\n",
    "half a letter": b"5,\xc3,4\n",
    "too many cells": b"5,a,b,c\n",
    "too few cells": b"5,a\n",
    "a long line": b"5," + b"x" * (1 << 24) + b",4\n",
    "an end of the wrong kind behind a quoted cell": b'5,b,"a"\r\n',
}


@pytest.mark.parametrize("bad", DEFECTS.values(), ids=DEFECTS)
@pytest.mark.parametrize("at", [1, 1200])
def test_a_line_that_breaks_the_form_is_refused_by_its_number_before_an_account_is_opened(
    tmp_path: Path, bad: bytes, at: int
) -> None:
    lines = [b"%d,a,%d\n" % (i, i % 5) for i in range(1500)]
    (tmp_path / "v.csv").write_bytes(b"id,ward,los\n" + b"".join([*lines[:at], bad, *lines[at:]]))
    with pytest.raises(tc.TacitError, match=rf"line {at + 2:,} of v\.csv breaks the form") as refused:
        tc.protect(
            tmp_path / "v.csv", unit="id", budget=tc.Budget(epsilon=1), name="v", ledger=tmp_path / "l.ledger"
        )
    assert not (tmp_path / "l.ledger").exists()
    assert "elective" not in str(refused.value)  # no cell is shown


def test_empty_lines_and_a_last_line_without_an_end_are_fine(tmp_path: Path) -> None:
    for body in (b"u,v,w\n\n1,2,3\n\n\n4,5,6", b"u,v,w\r\n\r\n1,2,3\r\n4,5,6", b'u,v,w\n1,2,""', b"u,v,w"):
        (tmp_path / "t.csv").write_bytes(body)
        read_source(tmp_path / "t.csv").check_form()


def test_a_file_without_quotes_can_be_declared_so(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b'u|v\n1|6" high\n2|"x\n')
    source = csv_file(tmp_path / "t.csv", quote="", separator="|")
    data = tc.protect(source, unit="u", keys={"v": ['"x', '6" high']}, budget=tc.Budget(epsilon=10**6))
    assert data.group_by("v").agg(n=tc.count()).plan(epsilon=10**5).release()["n"].value == (1, 1)
    with pytest.raises(tc.TacitError, match="breaks the form"):
        tc.protect(tmp_path / "t.csv", unit="u", budget=tc.Budget(epsilon=1))


def test_a_file_that_changed_is_checked_before_the_next_charge_in_words_without_rows(tmp_path: Path) -> None:
    file = tmp_path / "v.csv"
    file.write_text("id,los\n" + "".join(f"{i},3\n" for i in range(50)))
    data = tc.protect(file, unit="id", budget=tc.Budget(epsilon=2))
    data.agg(n=tc.count()).plan(epsilon=0.5).release()
    plan = data.agg(n=tc.count_units()).plan(epsilon=0.5)
    refusals = []
    for bad in ('9,"x\n', "9,3,4\n"):
        with file.open("a") as more:
            more.write(bad)
        with pytest.raises(tc.TacitError) as refused:
            plan.release()
        refusals.append(str(refused.value))
    assert refusals[0] == refusals[1]
    assert "line" not in refusals[0]
    assert float(data.remaining.epsilon) == 1.5


def test_a_defect_that_comes_after_the_charge_is_one_opaque_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "v.csv"
    file.write_text("id,los\n1,3\n")
    data = tc.protect(file, unit="id", budget=tc.Budget(epsilon=2))
    file.write_text('id,los\n1,"3\n2,4\n')
    monkeypatch.setattr(DuckDB, "check", lambda *_: None)
    with pytest.raises(tc.TacitError) as failed:
        data.agg(n=tc.count()).plan(epsilon=1).release()
    assert failed.value.code == "release-failed"
    assert "form" not in str(failed.value)


def test_a_file_that_passed_is_not_read_again_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tacit.engines.sources import _csv_form

    file, scans = tmp_path / "v.csv", []
    file.write_text("id,los\n1,3\n")
    real = _csv_form.records
    monkeypatch.setattr(_csv_form, "records", lambda *given: scans.append(1) or real(*given))
    monkeypatch.setattr(_csv_form, "_SETTLED", -(10**18))
    for _ in range(3):
        read_source(file).check_form()
    assert len(scans) == 1
    file.write_text("id,los\n1,3\n2,4\n")
    read_source(file).check_form()
    assert len(scans) == 2
