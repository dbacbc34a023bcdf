"""Random questions for the attack on tables: SQL and Python, of every kind that the documents describe."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tacit as tc

if TYPE_CHECKING:
    from collections.abc import Callable

MONTHS = ["2024-01-01", "2024-02-01", "2024-03-01"]
_NUMBERS = [
    "x", "x", "x", "y", "y", "k", "ABS(x)", "x * y", "x + y", "x - y", "x / y", "x % 3", "-x", "SQRT(y)",
    "LN(y)", "EXP(x)", "SIGN(x)", "FLOOR(x)", "CEIL(x)", "ROUND(x)", "ROUND(x, 1)", "POWER(x, 2)",
    "LEAST(x, y)", "GREATEST(x, y)", "COALESCE(x, 0)", "NULLIF(y, 0)", "LENGTH(h)", "YEAR(d)", "MONTH(d)",
    "EXTRACT(day FROM d)", "DAYOFWEEK(d)", "HOUR(d)", "DATE_DIFF('day', DATE '2024-01-01', d)",
    "CAST(h AS DOUBLE)", "TRY_CAST(h AS INTEGER)", "CAST(x AS INTEGER)", "IF(b, 1, 0)",
    "CASE WHEN b THEN x ELSE y END", "CAST(b AS INTEGER)", "WIDTH_BUCKET(x, -10, 10, 4)", "x * x * x * x",
    "1 / x", "CASE g WHEN 'a' THEN 1 WHEN 'b' THEN -2 END", "LENGTH(g) + x",
    "CAST(CAST(x AS VARCHAR) AS DOUBLE)", "EXP(EXP(EXP(x)))",
]  # fmt: skip
_TEXTS = [
    "h", "h", "g", "LOWER(h)", "UPPER(g)", "TRIM(h)", "SUBSTRING(h, 1, 2)", "LEFT(h, 1)", "g || h",
    "COALESCE(h, 'none')", "CAST(x AS VARCHAR)", "CAST(k AS VARCHAR)", "CAST(b AS VARCHAR)",
    "CAST(d AS VARCHAR)", "h || h || h", "NULLIF(h, '')", "CASE WHEN x > 0 THEN h ELSE g END",
    "REPLACE(h, 'a', 'bb')", "dayname(d)", "monthname(d)", "strftime(d, '%Y-%m')",
]  # fmt: skip
_CONDITIONS = [
    "x > 0", "x <= 5", "y BETWEEN 1 AND 40", "g = 'a'", "g IN ('a', 'b')", "g <> 'c'", "h LIKE 'a%'",
    "h ILIKE '%A%'", "b", "NOT b", "b IS TRUE", "x IS NULL", "x IS NOT NULL", "h IS NULL",
    "d >= DATE '2024-01-15'", "d < TIMESTAMP '2024-03-01 00:00:00'",
    "d + INTERVAL 7 DAY > DATE '2024-02-01'", "YEAR(d) = 2024", "STARTS_WITH(h, 'u')", "LENGTH(h) > 1",
    "x > y", "k = 5", "h = ''", "CAST(h AS DOUBLE) > 0", "CAST(d AS DATE) = DATE '2024-01-01'",
    "x = 10 OR y = 50", "x / y > 1", "g = h", "h = '1'", "x <> x", "CAST(x AS BOOLEAN)",
    "COALESCE(b, TRUE)", "k NOT IN (1, 2)",
]  # fmt: skip
_PUBLIC_GROUPS = [
    ("g", None), ("g", None), ("g", None),
    ("CASE WHEN x > 0 THEN 'plus' WHEN x <= 0 THEN 'minus' ELSE 'none' END", None),
    ("WIDTH_BUCKET(x, -10, 10, 4)", None), ("b", [True, False]), ("MONTH(d)", [1, 2, 3]),
    ("DATE_TRUNC('month', d)", MONTHS), ("CAST(d AS DATE)", ["2024-01-01", "2024-02-29"]),
    ("h", ["a", "A", "a ", "", "1", "\\xFF", "é"]), ("COALESCE(g, 'unknown')", None),
    ("k", [0, 1, 2, 3, 4, 5]), ("LOWER(h)", ["a", "b", "", "1"]),
    ("d", ["2024-01-01", "2024-02-29 12:00:00"]), ("x", [0, 1, 10, -10]),
]  # fmt: skip
_PRIVATE_GROUPS = [
    "h",
    "h",
    "h",
    "LOWER(h)",
    "LEFT(h, 1)",
    "k",
    "x",
    "d",
    "CAST(d AS DATE)",
    "DATE_TRUNC('week', d)",
    "b",
    "g || h",
]
#: Wrong questions, which must be refused alike on all neighbours.
_MISTAKES = [
    "SELECT SUM(h) FROM t",
    "SELECT nothing FROM t",
    "SELECT * FROM t",
    "SELECT SUM(x * y * z) FROM t",
    "SELECT g FROM t",
]


@dataclass(frozen=True)
class Facts:
    """What questions may assume: the unit, further tables, and whether the row is the unit."""

    unit: tuple[str, ...]
    second: bool
    public: bool
    #: Whether the budget has no delta, so that choices are made by permute-and-flip.
    pure: bool

    @property
    def using(self) -> str:
        """The columns on which tables are joined."""
        return ", ".join(self.unit)


@dataclass(frozen=True)
class Asked:
    """One question with its price; called with a dataset, it returns a plan."""

    words: str
    ask: Callable[[Any], Any]
    price: dict[str, Any]

    def __call__(self, dataset: Any) -> Any:
        return self.ask(dataset).plan(**self.price)


class Questioner:
    """Makes random questions from public facts."""

    def __init__(self, rng: random.Random, facts: Facts) -> None:
        self.rng, self.facts = rng, facts

    def __call__(self) -> Asked:
        rng = self.rng
        if rng.random() < 0.02:
            text = rng.choice(_MISTAKES)
            return Asked(text, lambda data: data.sql(text), {"epsilon": 1})
        return self._fluent() if rng.random() < 0.25 else self._sql()

    # prices -----------------------------------------------------------------------------------------------

    def _price(self, *, private: bool, sampled: bool = False) -> dict[str, Any]:
        rng = self.rng
        if self.facts.pure:
            return {"epsilon": rng.choice([1, 0.1])}
        if sampled:
            return {"epsilon": 1, **({"delta": 1e-6} if private else {})}
        if private:
            return rng.choice(
                [{"epsilon": 1, "delta": 1e-6}, {"epsilon": 0.3, "delta": 1e-6}, {"rho": 0.5, "delta": 1e-6}]
            )
        return rng.choice(
            [{"epsilon": 1}, {"epsilon": 1}, {"rho": 0.5}, {"epsilon": 1, "delta": 1e-6}, {"epsilon": 0.01}]
        )

    # SQL --------------------------------------------------------------------------------------------------

    def _number(self, bounded: str = "") -> str:
        rng = self.rng
        number = rng.choice(_NUMBERS) if rng.random() < 0.6 else rng.choice(["x", "y", "k"])
        if number in {"x", "y", "k"} and not bounded:
            return number
        low, high = rng.choice([(-5, 5), (0, 10), (-1, 20), (3, 7), (-9, -2)])
        return f"LEAST(GREATEST({number}, {low}), {high})"

    def _condition(self) -> str:
        rng = self.rng
        one = rng.choice(_CONDITIONS)
        match rng.randrange(6):
            case 0:
                return f"({one}) AND ({rng.choice(_CONDITIONS)})"
            case 1:
                return f"({one}) OR ({rng.choice(_CONDITIONS)})"
            case 2:
                return f"NOT ({one})"
            case _:
                return one

    def _aggregate(self) -> str:
        rng, number = self.rng, self._number()
        who = f"COUNT(DISTINCT {self.facts.unit[0]})" if len(self.facts.unit) == 1 else "COUNT(*)"
        made = rng.choice([
            "COUNT(*)", "COUNT(*)", "COUNT(x)", who, who, f"COUNT(DISTINCT {rng.choice(_TEXTS)})",
            f"SUM({number})", f"SUM({number})", f"AVG({number})", f"AVG({number})", f"MEDIAN({number})",
            f"MIN({number})", f"MAX({number})", f"STDDEV({number})", f"VARIANCE({number})",
            f"QUANTILE({number}, {rng.choice([0.1, 0.25, 0.9])})",
            f"PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY {number})", "MODE(k)", "MODE(g)",
            "MOST_COMMON(g, 2)", "MOST_COMMON(k, 3)", "CORR(x, y)", f"CORR({number}, y)",
            "COVAR_SAMP(x, k)", "REGR_SLOPE(y, x)", "REGR_R2(x, y)", f"HISTOGRAM({number}, 0, 1, 5, 10)",
            "SUM(x) / COUNT(*)", "ROUND(AVG(y), 1)", f"COUNT({number})",
            f"SUM(IF({rng.choice(_CONDITIONS)}, 1, 0))",
        ])  # fmt: skip
        if rng.random() < 0.01:
            return rng.choice(["POWER(AVG(x), 2)", "VAR(x)", "COUNT(*) * 100 / SUM(COUNT(*)) OVER ()"])
        if (
            rng.random() < 0.04
            and "OVER" not in made
            and "/" not in made
            and not made.startswith(("POWER", "ROUND"))
        ):
            made += f" FILTER (WHERE {self._condition()})"
        return made

    def _from(self) -> tuple[str, bool]:
        rng, facts = self.rng, self.facts
        options = ["plain"] * 10 + ["with", *(["distinct"] if facts.unit else [])]
        if facts.public:
            options += ["public", "public left"]
        if facts.unit:
            options += ["sample"]
            if facts.second:
                options += ["join", "join", "left", "self", "in", "not in", "comma"]
        using = facts.using
        match rng.choice(options):
            case "distinct":
                names = ", ".join(dict.fromkeys((*facts.unit, "x", "y", "k", "g", "h", "d", "b")))
                return f"(SELECT DISTINCT {names} FROM t) AS t", False
            case "with":
                names = ", ".join(dict.fromkeys((*facts.unit, "y", "k", "g", "h", "d", "b")))
                return (
                    f"(SELECT {names}, {self._number('x')} AS x FROM t WHERE {self._condition()}) AS t",
                    False,
                )
            case "public":
                return "t JOIN p USING (g)", False
            case "public left":
                return "t LEFT JOIN p ON t.g = p.g", False
            case "join":
                return f"t JOIN s USING ({using})", False
            case "left":
                return f"t LEFT JOIN s USING ({using})", False
            case "self":
                on = " AND ".join(f"t.{c} = q.{c}" for c in facts.unit)
                return f"t JOIN (SELECT {using}, z AS zz FROM s WHERE z > 1) AS q ON {on}", False
            case "in" if len(facts.unit) == 1:
                return f"t WHERE {using} IN (SELECT {using} FROM s WHERE z > {rng.choice([0, 5])})", False
            case "not in" if len(facts.unit) == 1:
                return f"t WHERE {using} NOT IN (SELECT {using} FROM s WHERE w = 'a')", False
            case "comma":
                return f"t, s WHERE {' AND '.join(f't.{c} = s.{c}' for c in facts.unit)}", False
            case "sample":
                return f"t TABLESAMPLE {rng.choice([20, 50, 90])} PERCENT", True
        return "t", False

    def _sql(self) -> Asked:
        rng, facts = self.rng, self.facts
        if facts.unit and rng.random() < 0.12:
            return self._per_unit()
        place, sampled = self._from()
        where = ""
        if rng.random() < 0.25:
            where = (
                " AND " if " WHERE " in place.rpartition(")")[2] or " IN (SELECT" in place else " WHERE "
            ) + self._condition()
        columns = [f"{self._aggregate()} AS c{i}" for i in range(rng.choice([1, 1, 1, 2, 3]))]
        keys: dict[str, Any] = {}
        groups, private = [], False
        chance = rng.random()
        if chance < 0.35:
            for i in range(rng.choice([1, 1, 2])):
                by, listed = rng.choice(_PUBLIC_GROUPS)
                groups.append((f"g{i}", by))
                if listed is not None:
                    keys[f"g{i}"] = [*listed, *([None] if rng.random() < 0.2 else [])]
        elif chance < 0.6 and not facts.pure:
            private = True
            groups = [("g0", rng.choice(_PRIVATE_GROUPS))]
            if rng.random() < 0.2:
                groups.append(("g1", rng.choice(["g", "h", "b"])))
        listed_groups = ", ".join(f"{by} AS {name}" for name, by in groups)
        over = ", ".join(name for name, _ in groups)
        if groups and not private and rng.random() < 0.15:
            over = f"ROLLUP ({over})"
        text = f"SELECT {', '.join([*([listed_groups] if groups else []), *columns])} FROM {place}{where}"
        text += f" GROUP BY {over}" if groups else ""
        if rng.random() < 0.05:
            text += " LIMIT 2"
        return Asked(
            text,
            lambda data: data.sql(text, keys=keys or None),
            self._price(private=private, sampled=sampled),
        )

    def _per_unit(self) -> Asked:
        rng, using = self.rng, self.facts.using
        by = rng.choice(["", "", ", g", ", h"])
        where = f" WHERE {self._condition()}" if rng.random() < 0.3 else ""
        inner = (
            f"SELECT {using}{by}, COUNT(*) AS n, SUM(x) AS sx, MAX(y) AS my, AVG(x) AS ax, "
            f"COUNT(DISTINCT h) AS dh, MIN(k) AS mk FROM t{where} GROUP BY {using}{by}"
        )
        number = rng.choice(["n", "sx", "my", "ax", "dh", "mk", "LEAST(n, 3)", "n * my"])
        number = number if rng.random() < 0.5 else f"LEAST(GREATEST({number}, -4), 9)"
        column = rng.choice([
            "COUNT(*)", f"SUM({number})", f"AVG({number})", f"MEDIAN({number})", f"STDDEV({number})",
            "CORR(my, ax)", f"HISTOGRAM({number}, 0, 1, 2, 50)", f"COUNT(DISTINCT {number})",
        ])  # fmt: skip
        group, private = "", False
        if rng.random() < 0.3:
            group, private = ("mk", True) if not by else (by[2:], by == ", h")
            group, private = ("", False) if private and self.facts.pure else (group, private)
        text = f"SELECT {group + ', ' if group else ''}{column} AS c FROM ({inner}) AS q"
        text += rng.choice(["", "", " WHERE n > 1", " WHERE ax > 0"]) + (
            f" GROUP BY {group}" if group else ""
        )
        return Asked(text, lambda data: data.sql(text), self._price(private=private))

    # Python -----------------------------------------------------------------------------------------------

    def _fluent(self) -> Asked:
        seed = self.rng.getrandbits(48)
        private = random.Random(seed).random() < 0.25 and not self.facts.pure
        sampled = bool(self.facts.unit) and random.Random(seed + 1).random() < 0.1
        price = self._price(private=private, sampled=sampled)
        facts = self.facts
        return Asked(
            f"Python, seed {seed}, {facts}",
            lambda data: fluent(data, seed, facts, private=private, sampled=sampled),
            price,
        )


def fluent(data: Any, seed: int, facts: Facts, *, private: bool, sampled: bool) -> Any:
    """Build a question in Python from a seed."""
    rng = random.Random(seed + 2)
    rows = data["t"]
    if sampled:
        rows = rows.sample(rng.choice([0.25, 0.75]))
    if rng.random() < 0.3:
        rows = rows.where(rng.choice(_CONDITIONS))
    if rng.random() < 0.15:
        rows = rows.where((tc.col("x") > rng.choice([-5, 0])) | tc.col("h").is_in(["a", "1"]))
    if rng.random() < 0.2:
        rows = rows.with_columns(x=rng.choice(["y / 5", "x * 2", "LENGTH(h)"]))
    if facts.public and rng.random() < 0.2:
        rows = rows.join("p", how=rng.choice(["inner", "left"]))
    if facts.unit and facts.second and rng.random() < 0.25:
        rows = rows.join(data["s"], how=rng.choice(["inner", "left"]), rows=rng.choice([None, 1, 2, 3]))
    if facts.unit and rng.random() < 0.4:
        rows = rows.limit(
            **rng.choice(
                [
                    {"groups": 1},
                    {"groups": 2, "per_group": 1},
                    {"per_group": 2},
                    {"groups": None, "per_group": None},
                ]
            )
        )
    if facts.unit and rng.random() < 0.1:
        rows = rows.per_unit(n=tc.count(), x=tc.sum("x"), y=tc.max("y"), k=tc.min("k"))
        return rows.agg(
            c=rng.choice(
                [
                    tc.mean("x", bounds=(-20, 20)),
                    tc.median("y"),
                    tc.sum("n"),
                    tc.mean("n"),
                    tc.mode("k") if hasattr(tc, "mode") else tc.count(),
                ]
            )
        )
    aggregates = {f"c{i}": _fluent_aggregate(rng) for i in range(rng.choice([1, 1, 2]))}
    if private:
        return rows.group_by(rng.choice(["h", "k", "d", "b"]), missing=rng.choice(["drop", "group"])).agg(
            **aggregates
        )
    if rng.random() < 0.4:
        return rows.agg(**aggregates)
    if rng.random() < 0.3:
        grouped = rows.group_by(
            "g", part=tc.col("x").width_bucket(-10, 10, 4), missing=rng.choice(["drop", "group"])
        )
        grouped = rng.choice([grouped, grouped.rollup(), grouped.cube()])
    else:
        grouped = rows.group_by("g", missing=rng.choice(["drop", "group"]))
    return grouped.agg(**aggregates)


def _fluent_aggregate(rng: random.Random) -> Any:
    bounds = rng.choice([None, (-5, 5), (0, 3), (-10, -2), (2, 8)])
    x = rng.choice(["x", "y", tc.col("x").clip(-3, 3), abs(tc.col("x"))])
    bounds = bounds if isinstance(x, str) else (0, 3)
    score = rng.choice([
        lambda c: tc.when(tc.col("x") >= c, c, 0),
        lambda c: tc.when(tc.col("x") >= c, 1, -1),
        lambda c: tc.col("x").clip(-3, 3) * c,
        lambda c: -abs(tc.col("y").clip(0, 50) - c),
    ])  # fmt: skip
    return rng.choice([
        tc.count(), tc.count("x"), tc.count_units(), tc.count_distinct("h"), tc.sum(x, bounds=bounds),
        tc.mean(x, bounds=bounds), tc.variance(x, bounds=bounds), tc.std(x, bounds=bounds),
        tc.correlation("x", "y"), tc.covariance("x", "k"), tc.slope("y", "x"), tc.quantile("x", 0.9),
        tc.quantiles("y", [0.1, 0.5, 0.9]), tc.median("y"), tc.median("y", interval=True),
        tc.quantile("x", 0.2, candidates=[0, 1, 5], interval=True), tc.min("y"), tc.max("x"),
        tc.histogram("y", [0, 1, 10, 50]), tc.most_common("g", 2),
        tc.most_common("h", 1, ["a", "b", "", "1"]), tc.best([-2, 0, 1, 5], score),
        tc.best([1, 2, 3], score),
    ])  # fmt: skip
