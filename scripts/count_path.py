"""Count what one question crosses on its way: functions, modules and changes of room.

Run: python scripts/count_path.py [--list]

For each stage (protect, sql, plan, release) of one question on the bundled visits it prints how many
different functions of Tacit run, in how many modules they stand, how many different calls lead from one room
into another, and how often, in the order of calls, a function runs in another room than the one before it.
Methods and properties count; lambdas, comprehensions and what a dataclass generates do not.
All modules are imported before. Cold is the first question of a process, and warm is the second, which finds
what the first one worked out. With --list it prints, for the first question, each function under its module,
in the order of their first calls, with the number of calls.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any

import tacit as tc
from tacit.tables import example_visits

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

HOME = Path(tc.__file__).parent
HOSPITALS = ["Ahorn", "Birke", "Buche", "Eiche", "Erle", "Fichte", "Linde", "Ulme"]
SQL = "SELECT hospital, COUNT(*) AS n, AVG(length_of_stay) AS stay FROM visits GROUP BY hospital"
STAGES = ("protect", "sql", "plan", "release")


def place_of(frame: FrameType | None) -> tuple[str, str] | None:
    """Return room and module of a frame of Tacit's own, else None."""
    if frame is None or not frame.f_code.co_filename.startswith(str(HOME)):
        return None
    inside = Path(frame.f_code.co_filename).relative_to(HOME)
    return inside.parts[0].removesuffix(".py"), str(inside)


class Counter:
    """Functions and modules that run, calls from one room into another, and changes in the order of calls."""

    def __init__(self) -> None:
        self.functions: dict[tuple[str, str], int] = {}  # by first call: how often each one runs
        self.calls: set[tuple[str, ...]] = set()
        self.changes = 0
        self._room: str | None = None

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Look at one event of the interpreter."""
        here = place_of(frame) if event == "call" else None
        if here is None or frame.f_code.co_name.startswith("<"):
            return
        name = here[1], frame.f_code.co_qualname
        self.functions[name] = self.functions.get(name, 0) + 1
        self.changes += self._room not in {None, here[0]}
        self._room = here[0]
        caller = frame.f_back
        while caller is not None and place_of(caller) is None:
            caller = caller.f_back
        above = place_of(caller)
        if caller is not None and above is not None and above[0] != here[0]:
            self.calls.add((above[1], caller.f_code.co_qualname, here[1], frame.f_code.co_qualname))

    @property
    def modules(self) -> dict[str, dict[str, int]]:
        """The functions that ran, with their numbers of calls, by module in the order of first calls."""
        found: dict[str, dict[str, int]] = {}
        for (module, function), calls in self.functions.items():
            found.setdefault(module, {})[function] = calls
        return found


def journey(watch: dict[str, Counter], number: int) -> None:
    """Ask one question, each stage under its own counter."""
    states: list[object] = [None]  # all are kept, so that none is cleared away while a stage is counted
    steps: dict[str, Callable[[Any], object]] = {
        "protect": lambda _: tc.protect(
            example_visits(),
            name=f"visits{number}",
            unit="patient_id",
            bounds={"length_of_stay": (0, 30)},
            keys={"hospital": HOSPITALS},
            budget=tc.Budget(epsilon=3),
            ledger=tc.Ledger.memory(),
        ),
        "sql": lambda data: data.sql(SQL.replace("visits", f"visits{number}")),
        "plan": lambda asked: asked.plan(epsilon=1),
        "release": lambda plan: plan.release(),
    }
    for stage in STAGES:
        gc.collect()  # not while a stage is counted
        sys.setprofile(watch.get(stage))
        try:
            states.append(steps[stage](states[-1]))
        finally:
            sys.setprofile(None)


def print_list(watch: dict[str, Counter]) -> None:
    """Print the functions of each stage under their modules."""
    for stage, seen in watch.items():
        print(f"\n{stage}")
        for module, functions in seen.modules.items():
            print(f"  {module}")
            print(*(f"    {function} ({calls})" for function, calls in functions.items()), sep="\n")
    print()


def main() -> None:
    """Ask twice in a process that has imported everything, and print the figures of both."""
    for module in walk_packages(tc.__path__, "tacit."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    for number, name in enumerate(("cold", "warm"), start=1):
        watch = {stage: Counter() for stage in STAGES}
        journey(watch, number)
        print(f"{name:<10}{'functions':>10}{'modules':>9}{'calls between rooms':>21}{'changes of room':>17}")
        for stage, seen in watch.items():
            functions, modules, calls = (len(found) for found in (seen.functions, seen.modules, seen.calls))
            print(f"{stage:<10}{functions:>10}{modules:>9}{calls:>21}{seen.changes:>17}")
        if name == "cold" and "--list" in sys.argv[1:]:
            print_list(watch)


if __name__ == "__main__":
    main()
