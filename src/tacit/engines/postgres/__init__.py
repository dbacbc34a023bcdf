"""The PostgreSQL engine: tables of a database are read in place, by a role that can do nothing else."""
