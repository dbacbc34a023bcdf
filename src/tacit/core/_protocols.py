"""The core's protocols: what it asks of a field, a ledger and an engine, without importing any of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from tacit.accounting import Budget, Cost

JSON: TypeAlias = bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None
#: Exact integers for a mechanism: one, nested lists or arrays of them, or whole numbers by key.
Exact: TypeAlias = Any
#: What a mechanism made of them, as plain JSON: this is what the ledger stores.
Noisy: TypeAlias = Any


class Measurement(Protocol):
    """What the core asks of a mechanism; every mechanism of `tacit.mechanisms` that takes integers fits."""

    @property
    def cost(self) -> Cost:
        """What one release takes from a budget."""

    def release(self, value: Any) -> Any:
        """Return noisy integers for exact ones."""

    def to_json(self) -> Mapping[str, Any]:
        """Return the law and its parameters, exactly: equal documents mean equal noise."""


class RememberingMeasurement(Measurement, Protocol):
    """A mechanism that spans the instalments of a run, such as one whose noise depends on its past noise.

    Its cost is that of all its releases in the run together.
    """

    def release_next(self, value: Any, memory: bytes) -> tuple[Any, bytes]:
        """Return noisy integers, and what the next instalment needs; the memory is empty at first.

        The core keeps the memory in the run's secret, where nobody sees it.
        """


class Charger(Protocol):
    """What the core asks of a ledger: keep an account, charge durably, compute once, store, return."""

    def create_account(
        self, name: str, *, budget: Budget, unit: str | None = None, adjacency: str | None = None,
        version: int = 1, parent: str | None = None, dataset: bool = False,
        record: Literal["words", "shape"] = "words", blocks: Any = None,
    ) -> Any:  # fmt: skip
        """Open the dataset's account, or find it with the same declared facts."""

    def account(self, name: str) -> Any:
        """Return an account with its ``budget``."""

    def remaining(self, account: str, *, block: str | None = None) -> Any:
        """Return what is left of an account's budget, or of one of its blocks."""

    def left(
        self, account: str, cost: Cost | None = None, *, promise: Budget | None = None,
        block: str | None = None,
    ) -> Any:  # fmt: skip
        """Return what is left for questions: one more of a size, or how many more of a cost."""

    def paid_release(self, account: str, plan: str, *, version: int | None = None) -> Any:
        """Return the stored release of a plan (``payload`` and ``receipt``) if this account has paid for it.

        None stands for both "nothing is stored" and "not paid". Nothing is charged.
        """

    def draw(
        self,
        account: str,
        cost: Cost,
        *,
        plan: str,
        compute: Callable[[Any], bytes],
        who: str = "",
        purpose: str = "",
        asked: str = "",
        record: Literal["words", "shape"] = "words",
        key: str | None = None,
        dataset: str | None = None,
        version: int | None = None,
        certificate: str = "",
        blocks: Sequence[str] = (),
        promise: Budget | None = None,
    ) -> Any:
        """Return the release: ``payload`` and ``receipt``.

        Refuses an account that is neither the dataset's nor below it. ``blocks`` are the blocks of the data
        that the answer depends on; none stands for all of it. ``promise`` is the epsilon and delta that the
        plan promises; its cost keeps them.
        """

    def run(
        self,
        account: str,
        cost: Cost,
        *,
        plan: str,
        instalments: int,
        who: str = "",
        purpose: str = "",
        asked: str = "",
        record: Literal["words", "shape"] = "words",
        key: str | None = None,
        dataset: str | None = None,
        version: int | None = None,
        certificate: str = "",
        blocks: Sequence[str] = (),
        promise: Budget | None = None,
    ) -> Any:
        """Charge a run once, or continue the run of this plan; see `tacit.ledger.LedgerRun`."""


class AnsweringService(Charger, Protocol):
    """A ledger that is far away, beside the data: it charges, draws and stores in one call.

    A plan whose ledger has this one method (`answer`) sends its document there, and neither charges nor
    touches data here.
    """

    def answer(
        self,
        plan: Mapping[str, JSON],
        *,
        account: str | None,
        purpose: str,
        key: str | None,
        stored: bool = False,
    ) -> Mapping[str, JSON] | None:
        """Return the document of the release (`Release.to_json`) that answers the document of a plan.

        With ``stored``, only what is stored and paid for, at no charge: None where there is nothing.
        """
