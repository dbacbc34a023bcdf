"""Well-known deployments that help to explain an epsilon: their published parameters and their units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Deployment:
    """One published figure.

    Attributes
    ----------
    name, year
        The organisation and its release, and the year of publication.
    epsilon
        The published epsilon; 0 where only rho was published.
    delta, rho
        The other published parameters; 0 where there are none.
    unit
        What the cost protects; figures with different units are not comparable.
    where
        ``central`` (a trusted curator adds the noise) or ``local`` (each device adds it).
    source
        The publication that states the figure.
    """

    name: str
    year: int
    epsilon: float
    delta: float
    rho: float
    unit: str
    where: str
    source: str

    @property
    def parameters(self) -> str:
        """The published parameters as text."""
        if not self.epsilon:
            return f"rho {self.rho:g}"
        return f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if self.delta else "")


#: Sorted by organisation. The units differ, so a larger epsilon alone does not mean weaker protection.
DEPLOYMENTS: Final = (
    Deployment(
        "Apple: emoji suggestions", 2017, 4, 0, 0, "one user, one day", "local",
        "Apple, Differential Privacy Overview",
    ),
    Deployment(
        "Apple: health types", 2017, 2, 0, 0, "one user, one day", "local",
        "Apple, Differential Privacy Overview",
    ),
    Deployment(
        "Google: Chrome RAPPOR, one report", 2014, 1.0743, 0, 0, "one report of one client", "local",
        "Erlingsson, Pihur, Korolova, RAPPOR (2014): h=2, f=1/2, p=1/2, q=3/4",
    ),
    Deployment(
        "Google: Chrome RAPPOR, all reports", 2014, 4.3944, 0, 0, "one value of one client, forever", "local",
        "Erlingsson, Pihur, Korolova, RAPPOR (2014): 4 ln 3",
    ),
    Deployment(
        "Google: COVID-19 mobility reports", 2020, 2.64, 0, 0, "one user, one day", "central",
        "Aktay et al., arXiv:2004.04145",
    ),
    Deployment(
        "LinkedIn: audience engagements", 2020, 34.9, 7e-9, 0, "one member, one month", "central",
        "Rogers et al., arXiv:2002.05839",
    ),
    Deployment(
        "US Census 2020: redistricting, persons", 2021, 17.14, 1e-10, 2.56, "one person, the whole release",
        "central", "US Census Bureau, June 2021; Abowd et al. (2022)",
    ),
    Deployment(
        "Wikimedia: page views by country, until 2023", 2023, 1, 0, 0, "30 page views of one day", "central",
        "Wikimedia Foundation, data set documentation; arXiv:2308.16298",
    ),
    Deployment(
        "Wikimedia: page views by country, since 2023", 2023, 0, 0, 0.015,
        "first 10 pages of one device, one day",
        "central", "Wikimedia Foundation, data set documentation; arXiv:2308.16298",
    ),
)  # fmt: skip
