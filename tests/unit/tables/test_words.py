"""What a newcomer is told: missing packages, what was asked, what is not counted, how far numbers hold."""

import sys

import pytest

import tacit as tc
from tacit import TacitError
from tacit.tables import example_visits
from tacit.tables.examples import EXAMPLE_HOSPITALS


def visits(**options):
    return tc.protect(
        example_visits(),
        **{
            "name": "visits",
            "unit": "patient_id",
            "bounds": {"length_of_stay": (0, 30)},
            "keys": {"hospital": EXAMPLE_HOSPITALS},
            "budget": tc.Budget(epsilon=10**6, delta=0.01),
            **options,
        },
    )


@pytest.mark.parametrize(
    ("call", "package", "fix"),
    [
        ("to_pandas", "pandas", "pip install 'tacit[pandas]'"),
        ("to_polars", "polars", "pip install polars"),
        ("to_arrow", "pyarrow", "pip install 'tacit[pandas]'"),
        ("to_parquet", "pyarrow", "pip install 'tacit[pandas]'"),
        ("plot", "matplotlib", "pip install 'tacit[plot]'"),
    ],
)
def test_a_missing_package_is_named_with_the_line_that_installs_it(call, package, fix, monkeypatch, tmp_path):
    release = visits().agg(n=tc.count()).plan(epsilon=1).release()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(TacitError) as refused:
        getattr(release, call)(*([tmp_path / "r.parquet"] if call == "to_parquet" else []))
    assert refused.value.code == "missing-extra"
    assert refused.value.what == f"{call} needs {package}, which is not installed"
    assert refused.value.fix == fix
    assert not list(tmp_path.iterdir())
