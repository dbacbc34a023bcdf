"""Each value of a frame has one text, whatever type its column has."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid

import numpy as np
import pandas as pd
import pytest

from tacit.engines.sources._frames import cell_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1"),
        (np.int8(1), "1"),
        (np.float32(0.5), "0.5"),
        (-0.0, "0"),
        (True, "true"),
        (np.bool_(False), "false"),
        (10**30, "1" + "0" * 30),
        (decimal.Decimal("1.50"), "1.5"),
        (decimal.Decimal("1E+3"), "1000"),
        (decimal.Decimal("-0.0"), "0"),
        (decimal.Decimal("1E+999999999"), "1E+999999999"),
        (decimal.Decimal("sNaN"), None),
        (1 + 0j, "1"),
        (1j, None),
        ("007", "007"),
        ("True", "True"),
        ("v\ud800", None),
        (b"v", "v"),
        (b"v\xff", None),
        (dt.date(1, 2, 3), "0001-02-03 00:00:00"),
        (dt.datetime(2020, 1, 1, 1, 2, 3, 450), "2020-01-01 01:02:03.00045"),
        (pd.Timestamp("1969-12-31 23:59:59.999999999"), "1969-12-31 23:59:59.999999"),
        (pd.Timestamp("2020-01-01", tz="Asia/Tokyo"), "2019-12-31 15:00:00"),
        (np.datetime64("2020-01-01T00:00:00.000000001"), "2020-01-01 00:00:00"),
        (np.datetime64("-20000-01-01"), None),
        (np.datetime64("NaT"), None),
        (np.timedelta64(5, "s"), None),
        (dt.timedelta(1), None),
        (dt.time(1), None),
        ((1,), None),
        ({1}, None),
        ({"a": 1}, None),
        (np.array([1]), None),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (pd.Period("2020-01"), "2020-01"),
        (pd.Interval(0.0, 10), "(0, 10]"),
        pytest.param(10**5000, None, id="long"),
        (pd.NA, None),
        (pd.NaT, None),
    ],
)
def test_one_value_has_one_text(value, text):
    assert cell_text(value) == text
