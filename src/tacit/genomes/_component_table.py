"""The content of a release of principal components: loadings, and what the noise leaves of each component."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit.core import AnswerTable

if TYPE_CHECKING:
    from tacit.core import JSON


@dataclass(frozen=True, slots=True, repr=False)
class PrincipalComponents(AnswerTable):
    """Loadings of the variants on each component, and the public numbers that say how far to trust them.

    A person's score is the sum of (copies - centre) x loading over the variants. Scores of the people in the
    cohort are not released.

    Parameters
    ----------
    shares
        The share of the variance that each component explains.
    noise
        The share that the largest component would seem to explain if there were nothing but noise.
    agreement
        How far each component agrees with that of the exact data: about the squared cosine between the two,
        to first order in the noise; 0 where the component cannot be told from the noise.
    """

    kind: ClassVar[str] = "principal-components"
    described: ClassVar[str] = "principal components"
    shares: tuple[float, ...] = ()
    noise: float = 0.0
    agreement: tuple[float, ...] = ()

    def to_json(self) -> JSON:
        """Return the components as JSON."""
        held: dict[str, JSON] = {
            "shares": list(self.shares), "noise": self.noise, "agreement": list(self.agreement),
        }  # fmt: skip
        return {**AnswerTable.to_json(self), **held}  # type: ignore[dict-item]

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the components back; raises ``ValueError`` where they are none."""
        read = super(PrincipalComponents, cls).from_json(document)
        return replace(
            read,
            shares=tuple(float(one) for one in document["shares"]),
            noise=float(document["noise"]),
            agreement=tuple(float(one) for one in document["agreement"]),
        )
