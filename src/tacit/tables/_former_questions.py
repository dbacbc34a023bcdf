"""Questions of rooms below this one that are not declared as question kinds yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.core import Plan


@dataclass(frozen=True, slots=True)
class FormerQuestion:
    """A question that its room asks, plans and rebuilds by itself."""

    name: str
    of: Callable[..., Any]
    rebuild: Callable[[Any, Any], Plan[Any]]

    def rebuilt(self, dataset: Any, request: Any) -> Plan[Any] | None:
        """Make a plan from its request again; None if the request is of another question."""
        return self.rebuild(dataset, request) if request.get("asks") == self.name else None
