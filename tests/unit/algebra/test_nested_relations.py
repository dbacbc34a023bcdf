"""Facts of nested relations are found in one step for each level, however deep people nest them."""

from tacit.algebra import Column, Measure, PerUnit, Relation, Scan, rows_per_unit, scope
from tacit.core import Fact, Table

LEVELS = 12


class CountedFacts(dict):
    """Facts of a table that count how often they are looked up."""

    looks = 0

    def get(self, *given):
        CountedFacts.looks += 1
        return super().get(*given)


def nested(by: tuple[str, ...], measures: tuple[Measure, ...]) -> Relation:
    facts = CountedFacts(patient=Fact("text", unit=True), age=Fact("number"))
    found: Relation = Scan(Table("visits", facts, ("patient", "age")), 3)
    for _ in range(LEVELS):
        found = PerUnit(found, tuple((name, Column(name)) for name in by), measures)
    return found


def test_the_facts_of_nested_groups_are_looked_up_once(monkeypatch):
    count = Measure("age", "count", None, None)
    for relation, rows in ((nested(("patient", "age"), ()), 3), (nested(("patient",), (count,)), 1)):
        for found in (scope, rows_per_unit):
            monkeypatch.setattr(CountedFacts, "looks", 0)
            found(relation)
            assert CountedFacts.looks == 2, found
        assert rows_per_unit(relation) == rows
        assert set(scope(relation)) == {"patient", "age"}
