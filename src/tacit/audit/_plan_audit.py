"""The audit of a whole plan: a search for neighbours on invented rows, then an attack on the release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import noise
from tacit.audit._audit import audit, claimed_epsilon
from tacit.core import Plan, RunTask, SharedReadings, Task, members_of, with_audit
from tacit.errors import TacitError
from tacit.exact import count
from tacit.fixes import Code, Either
from tacit.progress import progress
from tacit.report import Report, Reportable, ReportTable
from tacit.show import Drawn
from tacit.tables import FoundBoundsSubject, InventedTables, RowsSubject, TableSubject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.audit._audit import AuditResult
    from tacit.core import JSON
    from tacit.show import Figure
    from tacit.tables import StepChange, TablePair

_NO_GROUP = -1_000_000  # stands for a group that was not shown


@dataclass(frozen=True, slots=True, repr=False)
class PlanAudit(Drawn, Reportable):
    """What the attack on a plan found; printed as a page.

    Attributes
    ----------
    plan
        The plan, whose certificate names this audit: ``audit.plan.release()``.
    pairs
        How many neighbouring datasets were invented.
    changes
        For each step the largest change of its exact integers, and the declared sensitivity.
    worst
        The pair with the largest change.
    found
        The attack on the noisy answers for that pair, as a lower bound on epsilon.
    """

    plan: Plan[Any]
    pairs: int
    changes: tuple[StepChange, ...]
    worst: TablePair
    found: AuditResult

    @property
    def holds(self) -> bool:
        """Whether nothing was found: no change beyond its sensitivity, no event beyond the cost."""
        return all(change.holds for change in self.changes) and self.found.holds is not False

    def to_json(self) -> dict[str, JSON]:
        """Return the figures that the certificate keeps."""
        return {
            "pairs": self.pairs,
            "steps": [
                {"what": c.what, "largest_l1": str(c.l1), "declared_l1": str(c.declared_l1)}
                for c in self.changes
            ],
            "samples": self.found.samples,
            "epsilon_lower": self.found.epsilon_lower,
            "confidence": self.found.confidence,
            "holds": self.holds,
        }

    def report(self) -> Report:
        """Return the page: the verdict, each step's change, and the attack on the noisy answers."""
        verdict = "Nothing was found" if self.holds else "THE PLAN IS BROKEN"
        claimed = claimed_epsilon(self.plan.cost, self.found.delta)
        rows = tuple(
            (
                c.columns or "which groups exist",
                c.what,
                f"{c.l1:,}",
                f"{c.declared_l1:,}",
                "holds" if c.holds else "BROKEN",
            )
            for c in self.changes
        )
        searched = (
            f"{verdict}: Tacit invented {self.pairs:,} pairs of neighbouring datasets with the declared "
            "schema and compared the exact integers of each step with the declared sensitivity."
        )
        attacked = (
            "Then Tacit attacked the noisy answers for the worst pair. The attack proves that epsilon is at "
            f"least {self.found.epsilon_lower:.3g} (confidence {self.found.confidence:g}, "
            f"{self.found.samples:,} answers for each neighbour). The plan claims at most {claimed:.3g} at "
            f"delta {self.found.delta:g}."
        )
        proof = "An attack that finds nothing is not a proof; docs/proofs has the proofs."
        notes = (proof,) if self.holds else (f"the worst pair: {self.worst}", proof)
        table = ReportTable("", ("columns", "step", "largest change (L1)", "declared", "verdict"), rows)
        return Report(f"Attack on the plan for {self.plan.name}", (searched, attacked), (table,), notes)

    def figures(self) -> tuple[Figure, ...]:
        """Return the proven and the claimed curve of the attack on the noisy answers."""
        return self.found.figures()


@progress("Attacking the plan")
def audit_plan(plan: Plan[Any], *, pairs: int = 100, samples: int = 20_000) -> PlanAudit:
    """Attack a plan for tables before you release it. The attack reads no data and charges nothing.

    Tacit invents pairs of neighbouring datasets with the declared schema and hostile values. It computes the
    plan's exact integers on both datasets, with the SQL that the release will run, and compares the change
    with the declared sensitivity. For the pair that changes every step most, it draws the whole noisy answer
    many times and looks for events that distinguish the two datasets better than the cost allows.

    Guarantee: the verdict "broken" for a step is a proof: the exact integers of the reported pair differ too
    much. The verdict "broken" for the noisy answers is wrong with probability at most 1e-9. The verdict
    "holds" is not a proof.

    Parameters
    ----------
    plan
        A plan of one dataset of tables: answers, cross tables, ranges, hierarchies, or a batch of them, whose
        noisy numbers are attacked together.
    pairs
        How many pairs of neighbours to invent.
    samples
        How many noisy answers to draw for each neighbour of the worst pair.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
    >>> tc.audit(visits.agg(n=tc.count()).plan(epsilon=1), pairs=5, samples=2_000).holds
    True
    """
    [member, *more] = members_of(plan)
    subjects = _subjects(member.task)
    rows = [subject for subject in subjects if isinstance(subject, RowsSubject)]
    if more or len(rows) < len(subjects):
        raise _cannot_attack(several=len(subjects) > 1)
    tried = count("pairs", pairs, zero=False)
    invented = InventedTables(rows, member.identity, noise.uniform_below)
    pairs_of_rows = [invented.pair() for _ in range(tried)]
    changes = tuple(
        max(step, key=lambda c: (not c.holds, c.share))
        for step in zip(*(p.changes for p in pairs_of_rows), strict=True)
    )
    worst = max(pairs_of_rows, key=lambda pair: (not pair.holds, pair.least_share, pair.share))
    delta = float(plan.promised.get("delta", 0))
    if "rho" in plan.promised and not delta:
        delta = 1e-3  # rho promises nothing at delta 0
    attacked = audit(_plan_sampler(worst), "first", "second", samples=samples, delta=delta, claimed=plan.cost)
    result = PlanAudit(plan, tried, changes, worst, attacked)
    return replace(result, plan=with_audit(plan, result.to_json()))


def _subjects(task: Task[Any, Any] | RunTask[Any, Any]) -> list[object]:
    """Return what a task is about; of a batch, what each of its parts is about."""
    parts = task.parts if isinstance(task, Task) else ()
    return [part.subject for part in parts] or [task.subject]


def _cannot_attack(*, several: bool) -> TacitError:
    """Refuse a plan of which some part cannot be computed on invented rows, and say what can be attacked."""
    reason = "a part of this batch asks for something else, such as synthetic rows; " if several else ""
    return TacitError(
        "not-allowed",
        "Tacit can attack only a plan for one dataset of tables",
        why=f"{reason}the attack invents rows with the schema that the dataset declares",
        fix=Either(
            *([Code("tc.audit(question.plan(epsilon=1))")] if several else []),
            Code("tc.audit.audit_training(build)"),
            Code("tc.audit(mechanism)"),
        ),
    )


def _plan_sampler(pair: TablePair) -> Callable[[str, int], NDArray[np.float64]]:
    """Return a function that draws the noisy numbers of a plan, all parts together, on one neighbour."""
    parts = [_part_sampler(*tasks) for tasks in zip(pair.first, pair.second, strict=True)]
    return lambda which, size: np.concatenate([part(which, size) for part in parts], axis=1)


def _part_sampler(task: Task[Any, Any], second: Task[Any, Any]) -> Callable[[str, int], NDArray[np.float64]]:
    """Return a function that draws the noisy numbers of one task on one neighbour.

    If the task reads a sample, all other units are in it, and a coin decides about the unit that differs.
    """
    draw = _steps_sampler({"first": task, "second": second})
    share = task.sampled
    if share is None:
        return draw

    def sampled(which: str, size: int) -> NDArray[np.float64]:
        outputs = draw("second", size)
        if which == "first":
            inside = [noise.uniform_below(share.denominator) < share.numerator for _ in range(size)]
            outputs[inside] = draw("first", size)[inside]  # noise is drawn for those outside too, and dropped
        return outputs

    return sampled


def _steps_sampler(tasks: Mapping[str, Task[Any, Any]]) -> Callable[[str, int], NDArray[np.float64]]:
    """Return a function that draws the noisy numbers of all steps, without the sample of the task."""
    subject = tasks["first"].subject
    if isinstance(subject, TableSubject) and subject.asked.private_keys:
        return _private_groups_sampler(tasks)
    if isinstance(subject, FoundBoundsSubject):
        return lambda which, size: np.array([_numbers(tasks[which].draw()) for _ in range(size)], np.float64)
    many = (
        _many_as_lines if isinstance(subject, TableSubject) and subject.levels is None else _many_in_each_step
    )
    exact = {which: _exact(task) for which, task in tasks.items()}
    return lambda which, size: many(tasks[which].mechanisms, exact[which], size)


def _exact(task: Task[Any, Any]) -> list[Any]:
    """Return the exact integers of each step, none of which needs the noisy ones of another."""
    with SharedReadings.opened() as readings:
        data = task.open(readings)
        return [step.exact(data, ()) for step in task.steps]


def _many_in_each_step(mechanisms: Sequence[Any], exact: list[Any], size: int) -> NDArray[np.float64]:
    """Draw many answers of mechanisms that take tables of counts."""
    parts = [
        np.asarray(mechanism.release_many(value, size), dtype=np.float64).reshape(size, -1)
        for mechanism, value in zip(mechanisms, exact, strict=True)
    ]
    return np.concatenate(parts, axis=1)


def _many_as_lines(mechanisms: Sequence[Any], exact: list[Any], size: int) -> NDArray[np.float64]:
    """Draw many answers with one call of each mechanism, which draws for each group anew."""
    parts = []
    for mechanism, lines in zip(mechanisms, exact, strict=True):
        noisy = mechanism.release(list(lines) * size) if len(lines) else []
        parts.append(np.array(noisy, dtype=np.float64).reshape(size, -1))
    return np.concatenate(parts, axis=1)


def _private_groups_sampler(
    tasks: Mapping[str, Task[Any, Any]],
) -> Callable[[str, int], NDArray[np.float64]]:
    """Return a function that draws where groups are selected privately: the groups shown differ by draw."""
    groups = sorted({str(key) for task in tasks.values() for key in _groups(task)})

    def draw(which: str, size: int) -> NDArray[np.float64]:
        lines = [_flat(tasks[which].draw(), groups) for _ in range(size)]
        return np.array(lines, dtype=np.float64).reshape(size, -1)

    return draw


def _numbers(noisy: Any) -> list[float]:
    """Write the noisy integers of all steps as one vector."""
    return [float(noisy)] if not isinstance(noisy, list) else [n for one in noisy for n in _numbers(one)]


def _groups(task: Task[Any, Any]) -> list[tuple[object, ...]]:
    """Return the groups that may be shown, where they are selected privately."""
    with SharedReadings.opened() as readings:
        return list(task.steps[0].exact(task.open(readings), ()))


def _flat(noisy: list[Any], groups: list[str]) -> list[float]:
    """Write a noisy answer as one vector of fixed length: groups that are not shown have a number too."""
    names = [str(tuple(key)) for key, _ in noisy[0]]
    index: Mapping[str, int] = {key: i for i, key in enumerate(names)}
    numbers = [float(noisy[0][index[g]][1]) if g in index else _NO_GROUP for g in groups]
    for step in noisy[1:]:
        for g in groups:
            line = step[index[g]] if g in index else [_NO_GROUP]
            numbers.append(float(sum(line) if isinstance(line, list) else line))
    return numbers
