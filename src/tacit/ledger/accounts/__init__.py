"""Accounts of the ledger: what they declare, what is charged to them, what their curator decides.

- ``_accounts``: an account, its budget and its filter.
- ``_blocks``: a partition of the data, whose parts are charged separately.
- ``_charges``: check every level, then charge all of them.
- ``_decisions``: open, grow, restart, freeze, recover.
"""
