"""Files as offices have them: German dates, compressed files, Excel; read right, or refused in words."""

import gzip
from datetime import date, datetime

import pytest

import tacit as tc
from tacit import TacitError
from tacit.engines import csv_file
from tacit.tables import convert_csv

ROWS = "patient;admitted;days\n" + "".join(f"{n};{n % 28 + 1}.{n % 12 + 1}.2023;3,5\n" for n in range(240))


def _count(data, where):
    release = data.sql(f"SELECT COUNT(*) AS n FROM v WHERE {where}").plan(epsilon=400).release()
    return release.value


def _protected(source, **more):
    return tc.protect(
        source,
        name="v",
        unit="patient",
        limits={"rows": 1},
        budget=tc.Budget(epsilon=9000),
        ledger=tc.Ledger.memory(),
        **more,
    )


@pytest.mark.parametrize(
    ("order", "cell", "day"),
    [
        ("day.month.year", "31.12.2023", "2023-12-31"),
        ("day.month.year", " 1.2.2023 14:30 ", "2023-02-01"),
        ("month/day/year", "12/31/2023", "2023-12-31"),
        ("day-month-year", "31-12-2023", "2023-12-31"),
        ("year/month/day", "2023/12/31", "2023-12-31"),
        ("day.month.year", "2023-12-31", "2023-12-31"),
    ],
)
def test_a_declared_order_of_a_date_is_read(order, cell, day, tmp_path):
    (tmp_path / "v.csv").write_text(f"patient,admitted\n1,{cell}\n")
    data = _protected(csv_file(tmp_path / "v.csv", dates=order), types={"admitted": "date"})
    assert _count(data, f"CAST(admitted AS DATE) = DATE '{day}'") == 1


@pytest.mark.parametrize(
    "cell", ["31.02.2023", "12.31.2023", "1.1.23", "1.1.2023.4", "01.02.2023x", "", "1/2/2023"]
)
def test_a_cell_that_is_not_such_a_date_is_missing(cell, tmp_path):
    (tmp_path / "v.csv").write_text(f"patient,admitted\n1,{cell}\n")
    data = _protected(csv_file(tmp_path / "v.csv", dates="day.month.year"), types={"admitted": "date"})
    assert _count(data, "admitted IS NULL") == 1


@pytest.mark.parametrize(
    "order", ["%d.%m.%Y", "day.month", "day.day.year", "day.month-year", "tag.monat.jahr"]
)
def test_an_order_that_is_none_is_refused(order, tmp_path):
    (tmp_path / "v.csv").write_text("patient\n1\n")
    with pytest.raises(TacitError, match="dates must be the words day, month and year"):
        csv_file(tmp_path / "v.csv", dates=order)


def test_the_order_of_dates_is_part_of_a_question(tmp_path):
    (tmp_path / "v.csv").write_text("patient,admitted\n1,1.2.2023\n")
    plans = [
        _protected(source, types={"admitted": "date"}).agg(n=tc.count()).plan(epsilon=1)
        for source in (tmp_path / "v.csv", csv_file(tmp_path / "v.csv", dates="day.month.year"))
    ]
    assert plans[0].hash != plans[1].hash
    usual = csv_file(tmp_path / "v.csv", dates="year-month-day")
    assert _protected(usual, types={"admitted": "date"}).agg(n=tc.count()).plan(epsilon=1) == plans[0]


@pytest.mark.parametrize("condition", ["{} >= '01.01.2023'", "{} BETWEEN '1.1.2023' AND '31.12.2023'"])
def test_text_that_starts_with_the_day_is_not_put_in_order(condition, tmp_path):
    (tmp_path / "v.csv").write_text("patient,Tag der Aufnahme\n1,31.12.1990\n")
    column = '"Tag der Aufnahme"'
    for order, fix in (("", f"STRPTIME({column}, '%d.%m.%Y')"), ("day.month.year", "'2024-01-31'")):
        data = _protected(csv_file(tmp_path / "v.csv", dates=order))
        with pytest.raises(TacitError, match="does not compare dates") as refusal:
            _count(data, condition.format(column))
        assert fix in str(refusal.value.fix)


@pytest.mark.parametrize(("cell", "days"), [("1234,5", 1234.5), ("1.234,5", None), ("1.234", 1.234)])
def test_points_between_thousands_are_not_read(cell, days, tmp_path):
    (tmp_path / "v.csv").write_text(f"patient;days\n1;{cell}\n")
    data = _protected(csv_file(tmp_path / "v.csv", decimal=","))
    number = "CAST(days AS DOUBLE)"
    assert _count(data, f"{number} IS NULL" if days is None else f"{number} = {days}") == 1


def test_a_date_that_no_cell_can_equal_is_refused_only_where_its_order_is_declared(tmp_path):
    (tmp_path / "v.csv").write_text("patient,admitted\n1,31.12.2022\n")
    for condition in ("admitted = '31.12.2022'", "admitted IN ('31.12.2022')"):
        assert _count(_protected(tmp_path / "v.csv"), condition) == 1
        declared = _protected(csv_file(tmp_path / "v.csv", dates="day.month.year"))
        with pytest.raises(TacitError, match="in questions the year stands first"):
            _count(declared, condition)
        assert _count(declared, condition.replace("31.12.2022", "2022-12-31")) == 1


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_compressed_file_is_converted_once(place, tmp_path):
    (tmp_path / "stays.csv.gz").write_bytes(gzip.compress(ROWS.encode("latin-1")))
    with pytest.raises(TacitError, match=r"stays\.csv\.gz is compressed") as refusal:
        tc.protect(tmp_path / "stays.csv.gz", unit="patient", budget=tc.Budget(epsilon=1))
    assert str(refusal.value.fix) == "tacit convert stays.csv.gz stays.parquet"
    target = tmp_path / "stays.parquet"
    made = convert_csv(tmp_path / "stays.csv.gz", target, dates="day.month.year", decimal=",")
    assert made.columns == ("patient", "admitted", "days")
    day = {"first": "2023-01-01", "last": "2023-12-12"}[place]
    exact = sum(f"2023-{n % 12 + 1:02d}-{n % 28 + 1:02d}" == day for n in range(240))
    assert (
        _count(_protected(target), f"CAST(admitted AS DATE) = DATE '{day}' AND CAST(days AS DOUBLE) = 3.5")
        == exact
    )


def test_the_first_sheet_of_an_excel_file_is_converted(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [
        ("patient", "admitted", "at", "days", "note"),
        (1, date(2023, 12, 31), datetime(2023, 5, 1, 14, 30), 3.5, 'a, "b"\nc'),
        (None, None, None, None, None), (2, None, None, 4.0, None),
    ]:  # fmt: skip
        sheet.append(row)
    book.create_sheet("other").append(["not read"])
    book.save(tmp_path / "stays.xlsx")
    convert_csv(tmp_path / "stays.xlsx", tmp_path / "stays.parquet")
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(tmp_path / "stays.parquet").to_pylist()
    assert [row["patient"] for row in rows] == ["1", "2"]
    assert rows[0]["admitted"] == "2023-12-31"
    assert rows[0]["at"] == "2023-05-01 14:30:00"
    assert [row["days"] for row in rows] == ["3.5", "4"]
    assert rows[0]["note"] == 'a, "b" c'


def test_cells_of_excel_have_no_encoding_and_no_separator(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [("patient", "größe", "admitted"), (1, "3,5", "31.12.2023")]:
        book.active.append(row)
    book.save(tmp_path / "v.xlsx")
    german = {"encoding": "latin-1", "separator": ";", "decimal": ",", "dates": "day.month.year"}
    made = convert_csv(tmp_path / "v.xlsx", tmp_path / "v.parquet", **german)
    assert made.columns == ("patient", "größe", "admitted")
    assert _count(_protected(tmp_path / "v.parquet"), "größe = '3.5' AND admitted = '2023-12-31'") == 1


@pytest.mark.parametrize("name", ["stays.xlsx", "stays.csv.gz"])
@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04 junk", b"\x1f\x8b\x08 junk"])
def test_a_damaged_file_is_refused_in_words_and_nothing_is_written(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TacitError, match="cannot be read"):
        convert_csv(tmp_path / name, tmp_path / "stays.parquet")
    assert [file.name for file in tmp_path.iterdir()] == [name]
