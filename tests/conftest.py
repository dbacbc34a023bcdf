"""Hypothesis profiles: `ci` is quick and reproducible, `long` searches widely."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # spinning threads only slow two test workers

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci", max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("ci")
