"""The DuckDB engine, in this process: reads its sources in place, sees nothing else, returns integers.

- ``_engine``: the engine.
- ``_connections``: its connections, and what is attached to them.
- ``_views``: a table's rows with their owners, and the first rows of every owner.
- ``_dialect``: the SQL of DuckDB.
"""
