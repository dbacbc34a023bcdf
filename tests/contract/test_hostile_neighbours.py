"""A search for neighbours that differ by more than the plan declares: hostile cells in every kind of source.

Random people with names and cells from a hostile list, a person more whose rows stand anywhere, two tables in
two kinds of sources, random limits and questions. The exact integers of both sides are compared with the
declared sensitivity. The same pairs often exceed half of it, so the search would see a smaller bound.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as tc
from support.asking import subject_of
from tacit.algebra._contribution import contribution
from tacit.tables.planning._exact_integers import exact_integers

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = [
    *(
        "A",
        "B",
        "a",
        " A",
        "A ",
        "A\r",
        "A\n",
        "\rA",
        "A\r\nB",
        "p1\rzz,A,1",
        "A,B",
        "A;B",
        "A\tB",
        "12 days",
    ),
    *(
        "\x1a",
        "\x1ab",
        "\x1aa\x1ab",
        '"',
        '""',
        'x"y',
        "\\xFF",
        "\\xff",
        "sha256:" + "0" * 64,
        "=1",
        "\x1b[0m",
    ),
    *(
        "\x00",
        "A\x00",
        "A\x00B",
        "\ufeff",
        "\ufeffA",
        "\u2028",
        "\x85",
        "é",
        "e\u0301",
        "É",
        "",
        "NULL",
        "null",
    ),
    *("nan", "inf", "-inf", "1e400", "9" * 400, "-0", "0", "01", "+1", "True", "2024-01-01", "z" * 70_000),
    *("p1", "p2", "P1", "p1 ", " p1", "p1\r", "p1\x00"),
]
FORGED = [f"x\rf1{tail}" for tail in ("", "\rf2\rf3\rf4\rf5\rf6\rf7", "\rf2")] * 8
BYTES = [b"\xff", b"\xfe", b"\xff\xfe", b"\xc3", b"A\xff"]
KINDS = (
    *("csv \n", "csv \r\n", "parquet", "arrow", "pandas", "mixed pandas", "polars"),
    *("database", "connection", "bytes arrow", "bytes parquet"),
)
OBJECTS = {"inf": float("inf"), "0": 0, "9" * 400: 10**400, "=1": b"\xff", "A\x00": object(), "é": "\ud800"}
LIST = {"A": ("u", "h", "x", "w"), "B": ("u", "y", "v")}


def csv_line(cells: tuple[str, ...], end: str) -> str:
    quoted = ('"' + c.replace('"', '""') + '"' if any(s in c for s in ',"' + end) else c for c in cells)
    return ",".join(quoted) + end


def written(
    kind: str, rows: list[Any], names: tuple[str, ...], file: Path, as_bytes: dict[str, bytes]
) -> Any:
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    if kind.startswith("csv"):
        text = "".join(csv_line(row, kind[4:]) for row in [names, *rows])
        file.with_suffix(".csv").write_bytes(text.encode())
        return file.with_suffix(".csv")
    if kind in {"pandas", "mixed pandas"}:
        objects = OBJECTS if kind == "mixed pandas" else {}
        return pd.DataFrame(
            {n: pd.Series([objects.get(c, c) for c in v], dtype=object) for n, v in columns.items()}
        )
    if kind == "polars":
        return pl.DataFrame({n: pl.Series(n, v, dtype=pl.String) for n, v in columns.items()})
    table = pa.table({n: pa.array(v, pa.string()) for n, v in columns.items()})
    if kind.startswith("bytes"):
        stored = {
            n: pa.array([as_bytes.get(c, c.encode()) for c in v], pa.binary()) for n, v in columns.items()
        }
        table = pa.table(
            {n: pa.Array.from_buffers(pa.string(), len(v), v.buffers()) for n, v in stored.items()}
        )
    if kind.endswith("arrow"):
        return table
    if kind.endswith("parquet"):
        pq.write_table(table, file.with_suffix(".parquet"))
        return file.with_suffix(".parquet")
    con = duckdb.connect() if kind == "connection" else duckdb.connect(str(file.with_suffix(".duckdb")))
    con.register("frame", table)
    con.execute("CREATE TABLE t AS SELECT * FROM frame")
    con.unregister("frame")
    if kind == "connection":
        return con, "t"
    con.close()
    return file.with_suffix(".duckdb"), "t"


def question(data: Any, draw: random.Random) -> Any:
    rows, shape = data["a"], draw.choice(["plain", "plain", "join", "join", "self", "where", "per"])
    if shape == "self":
        return data.sql("SELECT COUNT(*) AS n, COUNT(DISTINCT b.h) AS k FROM a JOIN a AS b USING (u)")
    if shape == "per":
        each = rows.per_unit(m=tc.count(), k=tc.count_distinct("h"))
        return each.agg(s=tc.sum("m", bounds=(0, 3)), t=tc.sum("k", bounds=(0, 3)))
    if shape == "join":
        rows = rows.join(data["b"], how=draw.choice(["inner", "left"]))
    if shape == "where":
        rows = rows.where(
            draw.choice(["x > 0", "h <> 'B'", "LENGTH(h) < 3", "UPPER(h) = 'A'", "h || w <> 'AB'"])
        )
    all_ = {
        "n": tc.count(), "u": tc.count_units(), "s": tc.sum("x"), "m": tc.mean("x"),
        "k": tc.count_distinct("w"), "c": tc.count("w"),
    }  # fmt: skip
    asked = {name: all_[name] for name in draw.sample(sorted(all_), 3)}
    return (rows.group_by("h") if draw.random() < 0.6 else rows).agg(**asked)


def sides(draw: random.Random) -> tuple[list[Any], list[Any], dict[str, bytes]]:
    """Draw tables a and b without and with one person, whose name nobody else has.

    Half of the time, another's name spells the bytes of this person's, both have many rows, and they are in
    different wards: if they became one owner, the person's rows would push the other's rows out.
    """
    people, close = draw.sample(TEXTS, 5), draw.random() < 0.5
    people = ["\\xFF"] * 4 + people[:1] if close else people
    person = draw.choice([name for name in TEXTS if name not in people])
    as_bytes = dict(zip(draw.sample([*people[4:], person], 2), draw.sample(BYTES, 2), strict=True))
    if close:  # nobody else has the same bytes
        as_bytes = {name: b"\xfe\xfe" if v == b"\xff" else v for name, v in as_bytes.items()} | {
            person: b"\xff"
        }

    def row(name: str, width: int) -> tuple[str, ...]:
        ward = draw.choice(["A", "B", draw.choice(TEXTS)])
        ward = ("B" if name == person else "A") if close else ward
        number = draw.choice(["1", "2", draw.choice(TEXTS)])
        return (name, ward, number, draw.choice([*TEXTS, *FORGED]))[:width]

    def table(most: int, own: int, width: int) -> tuple[list[Any], list[Any]]:
        others = [row(draw.choice(people), width) for _ in range(most)]
        more = list(others)
        for _ in range(own):
            more.insert(draw.randint(0, len(more)), row(person, width))
        return others, more

    a = table(draw.randint(0, 8), draw.randint(3 if close else 1, 6), 4)
    b = table(draw.randint(0, 5), draw.randint(0, 3), 3)
    return [a[0], b[0]], [a[1], b[1]], as_bytes


def ratios(seed: int, folder: Path) -> list[float]:
    """Return each statistic's exact change as a part of its declared L1 sensitivity."""
    draw = random.Random(seed)
    small, large, as_bytes = sides(draw)
    kinds = draw.choice(KINDS), draw.choice(KINDS)
    limits = {
        "rows": draw.choice([1, 2, 3]),
        "joined": draw.choice([None, 2]),
        "groups": draw.choice([None, 1, 2]),
    }
    asked, found = draw.random(), []
    for side, tables in enumerate((small, large)):
        places = {
            name: written(kind, rows, LIST[name.upper()], folder / f"{seed} {side} {name}", as_bytes)
            for name, kind, rows in zip("ab", kinds, tables, strict=True)
        }
        data = tc.protect(
            places,
            unit="u",
            bounds={"x": (-2, 5)},
            keys={"h": ["A", "B", "1", "A\r"]},
            types={"x": "number", "h": "text", "w": "text"},
            limits=limits,
            budget=tc.Budget(epsilon=1),
        )
        task = subject_of(question(data, random.Random(asked)).plan(epsilon=0.5))
        exact = exact_integers(task.engine, task.asked, task.statistics)
        assert exact == exact_integers(task.engine, task.asked, task.statistics)  # from the snapshot
        found.append(exact)
    who = contribution(task.asked, row_level=False, adjacency="add/remove")
    parts = []
    for statistic, one in found[0].items():
        other, none = found[1][statistic], [0] * statistic.size
        changes = [
            abs(x - y)
            for key in {*one, *other}
            for x, y in zip(one.get(key, none), other.get(key, none), strict=True)
        ]
        most, squared = statistic.sensitivity(who)
        assert sum(changes) <= most, (seed, statistic, kinds, limits)
        assert sum(c * c for c in changes) <= squared, (seed, statistic, kinds, limits)
        parts.append(sum(changes) / most)
    return parts


@pytest.fixture
def one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides choose a unit's rows by the same secret."""
    monkeypatch.setattr("tacit.tables._protect.ranking_secret", lambda: 424242)


@pytest.mark.usefixtures("one_key")
@pytest.mark.parametrize("seed", [0, 1, 110, 171])  # the last two failed once: bytes, a line end
def test_no_pair_exceeds_what_the_plan_declares(seed: int, tmp_path: Path) -> None:
    assert ratios(seed, tmp_path)


@pytest.mark.long
@pytest.mark.usefixtures("one_key")
def test_many_pairs_stay_within_and_halved_bounds_would_be_seen(tmp_path: Path) -> None:
    parts = [part for seed in range(100, 400) for part in ratios(seed, tmp_path)]
    assert sum(part > 0.5 for part in parts) >= len(parts) / 3
