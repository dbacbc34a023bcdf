"""Draws against the ledger's charges: releases, and runs of numbered instalments.

- ``_receipts``: receipts, stored releases and entries, as the ledger returns them.
- ``_draws``: one draw for each receipt, and who has paid for what is stored.
- ``_runs``: one charge, many numbered instalments, and the secret between them.
"""
