"""The dial of streams: whole-number coefficients and their inverse."""

import numpy as np

from tacit.strategies import dial_coefficients, inverse_series, window_series


def test_a_window_is_a_sum_of_days():
    inverse = inverse_series(dial_coefficients(9, 0.4, 256, None, None), 9)
    week = window_series(inverse, 3)
    assert np.allclose(week, [inverse[max(0, i - 2) : i + 1].sum() for i in range(9)])
    assert np.allclose(window_series(inverse, None), np.cumsum(inverse))
