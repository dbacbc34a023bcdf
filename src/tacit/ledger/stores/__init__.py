"""Where the ledger is kept: stores, their files, and the writer through which every change goes.

- ``_opening``: find a ledger's store, key and witness.
- ``_writer``: batches, the seal, the witness, forks.
- ``_transaction``: what is stored, and what this batch adds to it.
- ``_store``: the interface of a store, and its rows.
- ``_sqlite``, ``_postgres``, ``_memory``: the stores.
- ``_sql``: the schema and the queries of the two SQL stores.
- ``_files``: the file of a ledger and its locks.
- ``_artifacts``: payloads that are too long for a row.
"""
