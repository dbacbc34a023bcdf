"""What makes the ledger's record checkable by those who do not trust its keeper.

- ``_chain``: the keyed hash chain and its key.
- ``_witness``: the log's head, kept elsewhere.
- ``_replay``: every account worked out again from the log alone.
- ``_verification``: the log against everything that is stored.
"""
