"""The SQL of Spark 4 with ANSI mode on: one total method for each operator, with DuckDB's results.

Constants of text double their backslashes. Whole numbers are BIGINT, and sums that public facts do not bound
are DECIMAL(38, 0). ``floor`` gives a BIGINT and raises beyond it, so that it is only used where a number is
small. ``isnan(NULL)`` is FALSE here, and ``greatest`` skips NULL: a number is asked for NULL first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tacit.engines._dialect import hashed_part
from tacit.engines.spark._operators import SparkOperators
from tacit.engines.spark._texts import (
    boolean_of_text,
    moment_of_text,
    number_of_text,
    string,
    text_of_number,
    whole_of_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import Kind
    from tacit.engines._dialect import Part, StoredType

_TYPES: dict[Kind | None, str] = {
    "number": "DOUBLE", "text": "STRING", "boolean": "BOOLEAN", "date": "TIMESTAMP_NTZ", None: "STRING",
}  # fmt: skip
_MOST_BIGINT = 2**63 - 1


class SparkDialect(SparkOperators):
    """Spark's SQL. The secret that orders rows and groups is the parameter ``:tacit_key``.

    Parameters
    ----------
    portable
        Whether a unit's rows are ranked as on the other engines, by md5. Spark's own hash is quicker, and
        any ranking will do: the contract tests rank alike everywhere, so that the same rows are kept.
    """

    name: ClassVar[str] = "spark"

    def __init__(self, *, portable: bool = False) -> None:
        self.portable = portable

    def quote(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def string(self, text: str) -> str:
        return string(text)

    def number(self, value: float) -> str:
        written = repr(float(value))
        if written in {"inf", "-inf", "nan"}:
            return f"double('{written}')"
        written = written if "e" in written else written + "e0"
        return f"({written})" if written.startswith("-") else written

    def moment(self, iso: str) -> str:
        return f"TIMESTAMP_NTZ {string(iso)}"

    def null(self, kind: Kind | None) -> str:
        return f"CAST(NULL AS {_TYPES[kind]})"

    # Values -------------------------------------------------------------------------------------------------

    def read(self, column: str, stored: StoredType | None, kind: Kind) -> str:
        match kind, stored:
            case "number", "text":
                said = f"CASE {column} WHEN 'true' THEN 1e0 WHEN 'false' THEN 0e0 END"
                return f"coalesce({number_of_text(column)}, {said})"
            case "boolean", "text":
                number = number_of_text(column)
                counted = f"CASE WHEN NOT isnan({number}) THEN {number} <> 0e0 END"
                return f"coalesce({boolean_of_text(column)}, {counted})"
            case "text", _:
                return self.text(column, stored)
            case _:
                return self._cast(column, stored, kind)

    def _cast(self, x: str, stored: StoredType | None, kind: Kind) -> str:
        """Write what TRY_CAST gives in DuckDB."""
        match kind, stored or "text":
            case ("number", "float") | ("boolean", "boolean") | ("date", "moment"):
                return x
            case "number", "whole" | "boolean" | "digits":
                return f"CAST({x} AS DOUBLE)"
            case "number", "text":
                return number_of_text(x)
            case "boolean", "whole":
                return f"({x} <> 0L)"
            case "boolean", "float":
                return f"({x} <> 0e0)"
            case "boolean", "digits":
                return f"(CAST({x} AS DOUBLE) <> 0e0)"
            case "boolean", "text":
                return boolean_of_text(x)
            case "date", "text":
                return moment_of_text(x)
            case _:
                return self.null(kind)

    def text(self, value: str, stored: StoredType | None) -> str:
        match stored:
            case "text" | "digits":
                return value
            case "float":
                return text_of_number(value)
            case _:
                return f"CAST({value} AS STRING)"

    def owner_text(self, owner: str) -> str:
        return f"CAST({owner} AS STRING)"

    def short(self, value: str, stored: StoredType | None, most: int) -> str:
        return f"CASE WHEN octet_length({value}) <= {most} THEN {value} END" if stored == "text" else value

    def is_missing(self, number: str) -> str:
        return f"({number} IS NULL OR isnan({number}))"

    def present(self, number: str) -> str:
        return f"(CASE WHEN NOT isnan({number}) THEN {number} END)"

    def key(self, value: str, kind: Kind, *, missing: bool) -> str:
        if kind == "date":
            return f"CAST({value} AS STRING)"
        if kind != "number":
            return value
        return f"(CASE WHEN NOT isnan({value}) THEN {value} + 0e0 END)" if missing else f"({value} + 0e0)"

    def grid(self, number: str, first: float, last: float, halves: float) -> str:
        inside = f"least(greatest({number}, {self.number(first)}), {self.number(last)})"
        half_steps = f"floor({inside} * {self.number(halves)})"
        return f"(CASE WHEN NOT {self.is_missing(number)} THEN shiftright({half_steps} + 1L, 1) END)"

    def even_cell(self, number: str, first: float, last: float, step: float, size: int) -> str:
        inside = f"least(greatest({number}, {self.number(first)}), {self.number(last)})"
        at = f"floor(({inside} - {self.number(first)}) / {self.number(step)} + 0.5e0)"
        held = f"least(greatest({at}, 0L), {size - 1}L)"
        return f"(CASE WHEN NOT {self.is_missing(number)} THEN {held} END)"

    # Whole numbers ------------------------------------------------------------------------------------------

    def total(self, whole: str, most: int | None = None) -> str:
        if most is not None and most <= _MOST_BIGINT:
            return f"coalesce(sum(CAST({whole} AS BIGINT)), 0L)"
        return f"coalesce({self.sum_or_null(whole)}, CAST(0 AS DECIMAL(38, 0)))"

    def sum_or_null(self, whole: str) -> str:
        return f"sum(CAST({whole} AS DECIMAL(38, 0)))"

    def whole_div(self, a: str, b: str) -> str:
        wide = f"CAST({a} AS DECIMAL(38, 0))"
        return f"CAST(({wide} - {wide} % {b}) / {b} AS DECIMAL(38, 0))"

    def to_double(self, whole: str) -> str:
        return f"CAST({whole} AS DOUBLE)"

    def vector(self, wholes: Sequence[str]) -> str:
        return f"array({', '.join(wholes)})"

    def element(self, vector: str, index: int) -> str:
        return f"{vector}[{index}]"

    def least_of(self, value: str, kind: Kind | None) -> str:
        del kind
        return f"min({value})"

    # Relations ----------------------------------------------------------------------------------------------

    def ranked(self, parts: Sequence[Part]) -> str:
        if self.portable:
            return self.ranked_alike(parts)
        return f"xxhash64({', '.join([':tacit_key', 'tacit_u', *(value for value, _ in parts)])})"

    def ranked_alike(self, parts: Sequence[Part]) -> str:
        """Write the keyed order of the other engines: md5 of key, owner and own values."""
        owner = hashed_part(self.owner_text("tacit_u"), "text")
        hashed = [owner, *(hashed_part(self.text(*part), part[1]) for part in parts)]
        return f"md5(CAST(concat_ws('|,', :tacit_key, {', '.join(hashed)}) AS BINARY))"

    def in_sample(self, sample: int) -> str:
        named = f"concat(:tacit_sample, {self.owner_text('tacit_u')})"
        return f"substring(sha2(CAST({named} AS BINARY), 256), 1, 8) < '{sample:08x}'"

    def semi(self, rows: str, table: str, columns: Sequence[str], *, missing: bool) -> str:
        return (
            f"SELECT r.* FROM ({rows}) r LEFT SEMI JOIN {table} s ON {self._same(columns, missing=missing)}"
        )

    def gathered(self, rows: str) -> str:
        return f"SELECT * FROM ({rows}) DISTRIBUTE BY tacit_u"

    def _same(self, columns: Sequence[str], *, missing: bool) -> str:
        sign = "<=>" if missing else "="
        return " AND ".join(f"r.{c} {sign} s.{c}" for c in columns)

    # Casts --------------------------------------------------------------------------------------------------

    def op_to_number(self, x: str, kind: Kind | None) -> str:
        return self._cast(x, _STORED[kind], "number")

    def op_to_whole(self, x: str, kind: Kind | None) -> str:
        match kind:
            case "number":
                small = f"{x} >= -9223372036854775808e0 AND {x} < 9223372036854775808e0"
                return f"(CASE WHEN {small} THEN rint({x}) + 0e0 END)"
            case "text" | None:
                return whole_of_text(x)
            case _:
                return self._cast(x, _STORED[kind], "number")

    def op_to_text(self, x: str, kind: Kind | None) -> str:
        return self.text(x, _STORED[kind])

    def op_to_boolean(self, x: str, kind: Kind | None) -> str:
        return self._cast(x, _STORED[kind], "boolean")

    def op_to_date(self, x: str, kind: Kind | None) -> str:
        return self._cast(x, _STORED[kind], "date")


_STORED: dict[Kind | None, StoredType] = {
    "number": "float", "text": "text", "boolean": "boolean", "date": "moment", None: "text",
}  # fmt: skip

#: Made when this module is read: Python refuses a dialect that lacks an operator.
SPARK = SparkDialect()
PORTABLE_SPARK = SparkDialect(portable=True)
