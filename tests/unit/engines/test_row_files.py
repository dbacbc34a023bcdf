"""Rows of a day, stored as a Parquet file with a mark for the units that count in it."""

import pandas as pd

from tacit.engines import KEPT, read_kept, read_source, write_rows


def stored(tmp_path, frame, barred=None, unit="pid"):
    path = tmp_path / "day.parquet"
    names = write_rows(read_source(frame), path, unit if barred is not None else None, barred)
    return names, path


def test_rows_are_stored_as_they_are(tmp_path):
    frame = pd.DataFrame({"pid": [1, 2], "name": ["a", None], "temp": [36.5, float("nan")]})
    names, path = stored(tmp_path, frame)
    assert names == ("pid", "name", "temp")
    assert pd.read_parquet(path).to_dict("list")["pid"] == [1, 2]
    assert read_kept(path, "pid") == []


def test_barred_units_are_marked_and_those_without_a_name_do_not_count(tmp_path):
    seen = []

    def barred(owners):
        seen.extend(sorted(owners))
        return ["2", "9"]

    frame = pd.DataFrame({"pid": [1.0, 2.0, 2.0, None, 3.0]})
    _, path = stored(tmp_path, frame, barred)
    assert seen == ["1", "2", "3"]
    assert sorted(read_kept(path, "pid")) == ["1", "3"]
    assert pd.read_parquet(path)[KEPT].tolist()[:3] == [True, False, False]


def test_a_unit_has_one_name_in_every_type(tmp_path):
    for values in ([7, 8], [7.0, 8.0], ["7", "8"]):
        _, path = stored(tmp_path, pd.DataFrame({"pid": values}), lambda owners: [])
        assert sorted(read_kept(path, "pid")) == ["7", "8"]
        path.unlink()
