"""The core's unit, who is protected; and the declared identity of a dataset, to which a budget is bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, cast

from tacit.accounting import ADJACENCIES, Adjacency, Budget
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Code, Declare, Either, Say, Set
from tacit.parameters import Choice, Instance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core._protocols import Charger

#: What one unit is: the rows that share a value of a column, a single row, an edge or a node of a graph, a
#: client of a federated run.
UnitKind = Literal["column", "row", "edge", "node", "client"]
_WORDS = ("row", "edge", "node", "client")
_PER = " per "


@dataclass(frozen=True, slots=True)
class Unit:
    """Who is protected: Tacit protects everything that belongs to one unit together.

    Parameters
    ----------
    column
        The column that says to whom a row belongs.
    per
        A second column, such as the day: each pair of the two is a unit of its own. The guarantee then
        covers one person's one day, not everything that the person ever does.

    Examples
    --------
    >>> Unit("patient_id")
    Unit('patient_id')
    >>> Unit("patient_id", per="day")     # one patient's one day
    Unit('patient_id', per='day')
    >>> Unit.row()                        # single events: each row stands for itself
    Unit.row()
    >>> str(Unit.edge()), Unit.node()     # graphs: one connection, or one person with all of them
    ('edge', Unit.node())
    >>> Unit("patient_id").noun, Unit("user", per="day").noun, Unit.row().noun
    ('patient', 'user and day', 'row')
    """

    column: str
    per: str = ""
    kind: UnitKind = "column"
    #: The columns that name the owner of a row; empty where no column does.
    columns: tuple[str, ...] = field(init=False, repr=False, compare=False)
    #: What one unit is called in a sentence: ``patient`` for the column ``patient_id``.
    noun: str = field(init=False, repr=False, compare=False)
    #: Whether each row stands for itself.
    is_row: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", ())
        object.__setattr__(self, "noun", self.kind)
        object.__setattr__(self, "is_row", self.kind == "row")
        if self.kind != "column":
            return
        for name, value in (("unit", self.column), ("per", self.per or "x")):
            name_of_column: object = value
            if not isinstance(name_of_column, str) or not name_of_column or "\x00" in name_of_column:
                raise bad_parameter(name, "the name of a column", value, fix=Declare("unit", "patient_id"))
        if self.column in _WORDS:
            raise bad_parameter(
                "unit",
                f"a column with a name other than {self.column!r}",
                self.column,
                why=f"ledgers and certificates write {self.column!r} for units that are not a column",
                fix=Either(Code(f"tc.Unit.{self.column}()"), Say("rename the column")),
            )
        if _PER in self.column + self.per:
            raise bad_parameter(
                "unit",
                f"a column without {_PER!r} in its name",
                self.column if _PER in self.column else self.per,
                why=f"ledgers and certificates write {_PER!r} between the two columns that name a unit",
                fix="rename the column",
            )
        if self.per == self.column:
            raise bad_parameter("per", "the name of a second column", self.per, fix=Set(per="day"))
        columns = (self.column, self.per) if self.per else (self.column,)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "noun", " and ".join(name.removesuffix("_id") or name for name in columns))

    @classmethod
    def row(cls) -> Unit:
        """Protect single rows (events). A person with many rows is protected only row by row."""
        return cls("", kind="row")

    @classmethod
    def edge(cls) -> Unit:
        """Protect single edges of a graph: one connection between two people."""
        return cls("", kind="edge")

    @classmethod
    def node(cls) -> Unit:
        """Protect nodes of a graph: one person with all connections."""
        return cls("", kind="node")

    @classmethod
    def client(cls) -> Unit:
        """Protect clients of a federated run: everything that one hospital or one phone holds."""
        return cls("", kind="client")

    @classmethod
    def from_text(cls, text: str) -> Unit:
        """Read a unit as ledgers, certificates and plans write it: what ``str(unit)`` returned.

        Examples
        --------
        >>> Unit.from_text("patient_id per day"), Unit.from_text("row")
        (Unit('patient_id', per='day'), Unit.row())
        """
        if text in _WORDS:
            return cls("", kind=cast("UnitKind", text))
        column, _, per = text.partition(_PER)
        return cls(column, per)

    def __repr__(self) -> str:
        if self.kind != "column":
            return f"Unit.{self.kind}()"
        return f"Unit({self.column!r}, per={self.per!r})" if self.per else f"Unit({self.column!r})"

    def __str__(self) -> str:
        if self.kind != "column":
            return self.kind
        return f"{self.column}{_PER}{self.per}" if self.per else self.column


@dataclass(frozen=True, slots=True)
class Identity:
    """What a budget is bound to: declared facts only, nothing that depends on the data.

    The ledger account that pays for a dataset has its ``name``, so that a new session does not reset it.
    ``block`` names the block that all of the data belongs to, where its curator declares one.
    """

    name: str
    version: int
    unit: Unit
    adjacency: Adjacency
    block: str = ""

    def document(self) -> dict[str, str | int]:
        """Return the identity as JSON."""
        return {
            "name": self.name,
            "version": self.version,
            "unit": str(self.unit),
            "adjacency": self.adjacency,
            **({"block": self.block} if self.block else {}),
        }


def read_identity(
    *, name: str = "data", version: int = 1, unit: str | Unit, adjacency: Adjacency = "add/remove"
) -> Identity:
    """Read a dataset's declared identity, or refuse with what is wrong in it.

    Examples
    --------
    >>> read_identity(name="visits", unit="patient_id").document()["unit"]
    'patient_id'
    """
    text: object = name
    if not isinstance(text, str) or not name or len(name) > 200 or not name.isprintable():
        raise bad_parameter(
            "name", "printable text of at most 200 characters", name, fix=Declare("name", "visits")
        )
    Choice(ADJACENCIES).read("adjacency", adjacency)
    whom = unit if isinstance(unit, Unit) else Unit(unit)
    return Identity(name, count("version", version, zero=False), whom, adjacency)


def budget_of(policy: Mapping[str, Any]) -> Budget:
    """Read the budget of a declaration in a service or a configuration, whose numbers are text.

    Examples
    --------
    >>> budget_of({"budget": {"epsilon": "0.5", "delta": "0", "rho": None}})
    Budget(epsilon=0.5)
    """
    numbers = {name: Fraction(str(value)) for name, value in policy["budget"].items() if value is not None}
    return Budget(**numbers)


def open_account(
    identity: Identity,
    budget: Budget,
    ledger: Charger,
    *,
    parent: str | None = None,
    record: Literal["words", "shape"] = "words",
    blocks: object = None,
    places: Sequence[str] = (),
) -> None:
    """Open the account that pays for a dataset, or find it with the same declared facts.

    Parameters
    ----------
    identity, budget, ledger
        Who is asked, what may be learned in total, and where it is recorded.
    parent
        A curator's account that several datasets share: it pays for every question to any of them.
    record
        What the log keeps of a question: its words, or its shape, without the constants in it.
    blocks
        The public partition of the data whose blocks are charged separately, or None.
    places
        Where the data is: paths and tables, never what is in them. The account keeps keyed digests of them,
        so that a second account for the same place is noticed.
    """
    example = "tc.protect(..., budget=tc.Budget(epsilon=1))"
    Instance(Budget, example, why="there is no default epsilon").read("budget", budget)
    books: Any = ledger
    label = books.source_label(places) if places and hasattr(ledger, "source_label") else ""
    beside = [name for name in books.accounts_of_source(label) if name != identity.name] if label else []
    try:
        books.create_account(
            identity.name,
            unit=str(identity.unit),
            budget=budget,
            adjacency=identity.adjacency,
            version=identity.version,
            parent=parent,
            dataset=True,
            record=record,
            **({} if blocks is None else {"blocks": blocks}),
            **({"labels": {"source": label}} if label else {}),
        )
    except TacitError as refusal:
        if refusal.code != "account-differs" or not getattr(ledger, "kept", ""):
            raise
        raise _declared_before(identity.name, refusal, books.account(identity.name).budget, budget) from None
    if label:
        path = books.account(identity.name).path[1:]
        unrelated = [name for name in beside if not path or not {*path} & {*books.account(name).path}]
        books.beside = {**books.beside, identity.name: tuple(unrelated)}


def _declared_before(name: str, refusal: TacitError, old: Budget, new: Budget) -> TacitError:
    """Refuse another declaration of the same data in one Python process, in a notebook's words."""
    return refusal.but(
        why=f"{name!r} was declared with the same data before in this Python process, and what was charged "
        "then still counts; without ledger=, that is remembered until Python ends",
        fix=refusal.fix if old == new else Either(Set(budget=old), Set(ledger=f"{name}.ledger")),
    )


def notes_on(ledger: object, name: str) -> list[str]:
    """Say what the curator should know of a dataset's account: that it is forgotten, or not the only one."""
    beside = getattr(ledger, "beside", {}).get(name, ())
    others = ", ".join(beside[:3]) + (" and others" if len(beside) > 3 else "")
    accounts = "another account" if len(beside) == 1 else "other accounts"
    was = "was" if len(beside) == 1 else "were"
    note = f"{accounts} ({others}) of this ledger {was} opened for the same source; what they spend adds up"
    return [one for one in (getattr(ledger, "kept", ""), note if beside else "") if one]
