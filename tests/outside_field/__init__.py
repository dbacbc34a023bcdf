"""A package outside Tacit, as `tests/unit/core/test_outside_field.py` installs it."""
