"""Where the rows are: files, frames and databases. Before a charge, only columns and their types are read.

- ``_arguments``: what a person gives as a source, recognised and checked.
- ``_sources``: the sources themselves.
- ``_csv_files``: header lines, line ends and encodings of CSV files.
- ``_csv_form``: the form of a CSV file as a whole.
- ``_conversion``: CSV files converted to Parquet once.
- ``_parquet``: Parquet files, folders of them, and their addresses.
- ``_frames``: data frames.
- ``_row_files``: rows that come in day by day.
- ``_columns``: columns of one source as arrays.
"""
