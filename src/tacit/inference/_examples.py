"""An invented trial to try tests on, so that nobody needs protection while learning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.core import needs

if TYPE_CHECKING:
    from tacit.accounting import Budget
    from tacit.tables import TableDataset


def example_trial(*, budget: Budget) -> TableDataset:
    """Return a dataset of an invented trial: 800 people, half of them with a drug that lowers pressure by 5.

    Columns: person, arm (drug, placebo), site (A to D), sbp (systolic pressure, 80 to 220), well (yes or no).
    Each person has one row.

    Examples
    --------
    >>> import tacit as tc
    >>> example_trial(budget=tc.Budget(epsilon=1)).name
    'trial'
    """
    needs("example_trial", "pyarrow", "tacit[pandas]")
    import pyarrow as pa

    from tacit.tables import protect

    draw = np.random.default_rng(20261116)
    drug = np.arange(800) % 2 == 0
    rows = pa.table(
        {
            "person": np.arange(800),
            "arm": np.where(drug, "drug", "placebo"),
            "site": np.array(list("ABCD"))[draw.integers(0, 4, 800)],
            "sbp": draw.normal(142, 18, 800).round() - 5 * drug,
            "well": draw.random(800) < np.where(drug, 0.62, 0.5),
        }
    )
    return protect(
        rows,
        unit="person",
        name="trial",
        budget=budget,
        bounds={"sbp": (80, 220)},
        keys={"arm": ["drug", "placebo"], "site": list("ABCD")},
        types={"well": "boolean"},
        limits={"rows": 1},
    )
