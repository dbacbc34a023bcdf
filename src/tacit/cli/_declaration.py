"""The declaration of one dataset that the ``tacit init`` command writes, as a commented ``tacit.toml``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tacit.cli._toml import toml_key, toml_list, toml_table, toml_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: Shown as a comment where the curator gave no budget.
_EXAMPLE_BUDGET = {"epsilon": 3.0, "delta": 1e-6}


@dataclass(frozen=True, slots=True)
class Declaration:
    """One dataset as ``tacit init`` writes it."""

    name: str
    source: str
    unit: str
    ledger: str
    columns: tuple[str, ...]
    types: Mapping[str, str]
    bounds: Mapping[str, tuple[float, float]]
    keys: Mapping[str, list[object]]
    limits: Mapping[str, int]
    budget: Mapping[str, float]
    reading: Mapping[str, str] = field(default_factory=dict)

    def check(self, folder: Path) -> None:
        """Refuse what the library would refuse, before anything is written."""
        from tacit.ledger import Ledger
        from tacit.tables import read_config

        whole = replace(self, budget=self.budget or {"epsilon": 1.0})
        with Ledger.memory() as ledger:
            read_config(whole.text(), folder).dataset(self.name, ledger=ledger)

    def text(self) -> str:
        """Write the file."""
        sections = (self._head(), self._limits(), self._bounds(), self._keys(), self._types())
        return "\n\n".join("\n".join(lines) for lines in sections) + "\n"

    def could_be(self, kind: str) -> list[str]:
        """Return the columns that may be of a kind, as far as the schema shows."""
        return [c for c in self.columns if c != self.unit and self.types.get(c, kind) == kind]

    def _head(self) -> list[str]:
        budget = toml_table(self.budget or _EXAMPLE_BUDGET)
        return [
            "# What Tacit may rely on. All of it is public; none of it was read from the data.",
            "# Written by `tacit init`; later changes are yours.",
            "",
            "# Where the budget is kept. Opening it again never resets what was spent.",
            f"ledger = {toml_text(self.ledger)}",
            "",
            self._heading(),
            f"source = {toml_text(self.source)}",
            *(f"{fact} = {toml_text(own)}" for fact, own in self.reading.items()),
            "# New data, such as next month's file? Increase the version: stored answers belong to one",
            "# version. The budget stays.",
            "# version = 1",
            "# Who is protected: all rows with the same value here, together. If empty: single rows.",
            f"unit = {toml_text(self.unit)}",
            "# How much may be learned in total; `tacit explain --epsilon 3` shows what that means.",
            f"{'' if self.budget else '# '}budget = {budget}",
        ]

    def _limits(self) -> list[str]:
        whose = f"rows with the same {self.unit}" if self.unit else "copies of one row"
        return [
            f"# How many {whose} count. A smaller limit means less noise,",
            "# but more rows are dropped. By default, 10 rows count.",
            self._heading("limits"),
            *(f"{toml_key(name)} = {limit}" for name, limit in self.limits.items()),
            *([] if self.limits else ["# rows = 10"]),
        ]

    def _bounds(self) -> list[str]:
        open_columns = self._undeclared("number", self.bounds, self.keys)
        return [
            "# Public ranges of the columns that you sum or average. Values outside are clipped. Take a",
            "# range from public knowledge, not from the data.",
            *([] if self.types else ["# (A CSV file has no types: skip columns of text and dates.)"]),
            self._heading("bounds"),
            *(f"{toml_key(column)} = {toml_list(pair)}" for column, pair in self.bounds.items()),
            *(f"# {toml_key(column)} = [LOW, HIGH]" for column in open_columns),
        ]

    def _keys(self) -> list[str]:
        return [
            "# Groups that are publicly known to exist. Other groups are selected with a delta.",
            self._heading("keys"),
            *(f"{toml_key(column)} = {toml_list(values)}" for column, values in self.keys.items()),
            *(
                f'# {toml_key(column)} = ["A", "B"]'
                for column in self._undeclared("text", self.keys, self.bounds)
            ),
        ]

    def _types(self) -> list[str]:
        known = {self.unit, *self.types, *self.bounds, *self.keys}
        return [
            "# KIND: number, text, boolean or date. Needed where a question does not make it clear.",
            self._heading("types"),
            *(f"{toml_key(column)} = {toml_text(kind)}" for column, kind in self.types.items()),
            *(f'# {toml_key(column)} = "KIND"' for column in self.columns if column not in known),
        ]

    def _heading(self, section: str = "") -> str:
        return f"[datasets.{toml_key(self.name)}{'.' + section if section else ''}]"

    def _undeclared(self, kind: str, *declared: Mapping[str, object]) -> list[str]:
        """Return the columns that may be of a kind and are not among the declared ones."""
        known = {column for facts in declared for column in facts}
        return [column for column in self.could_be(kind) if column not in known]
