"""Who is calling: a person by a session, or a token of a person; and which roles they have where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Role: TypeAlias = Literal["admin", "owner", "curator", "analyst", "auditor"]
ROLES: Final[tuple[Role, ...]] = ("admin", "owner", "curator", "analyst", "auditor")
#: What a token may be used for; a session may do all that its person may.
SCOPES: Final = ("read", "plan", "ask", "curate", "audit", "admin")
TokenScope: TypeAlias = Literal["read", "plan", "ask", "curate", "audit", "admin"]


@dataclass(frozen=True, slots=True)
class Caller:
    """A known person and what they may do.

    Parameters
    ----------
    id, name
        The opaque id, which the ledger records, and the name that pages show.
    grants
        Roles by dataset; ``""`` stands for all datasets.
    scopes
        What the token may be used for; a session has all.
    only
        The one dataset that a token is for; empty for all.
    token
        The token's id; empty for a session.
    csrf
        What the forms of this session must hold.
    """

    id: str
    name: str
    grants: Mapping[str, frozenset[str]] = field(default_factory=dict)
    scopes: frozenset[str] = frozenset(SCOPES)
    only: str = ""
    token: str = ""
    csrf: str = ""

    @property
    def roles(self) -> frozenset[str]:
        """All roles that the person has anywhere, or where the token is for; for the navigation too."""
        if self.only:
            return self.roles_on(self.only)
        return frozenset(role for dataset in self.grants for role in self.roles_on(dataset))

    def roles_on(self, dataset: str) -> frozenset[str]:
        """Return the roles on one dataset; an owner has those of a curator too."""
        if self.only and dataset != self.only:
            return frozenset()
        found = self.grants.get("", frozenset()) | self.grants.get(dataset, frozenset())
        return found | {"curator"} if "owner" in found else found

    def may(self, role: Role, dataset: str = "") -> bool:
        """Whether the person has a role on a dataset."""
        return role in self.roles_on(dataset)
