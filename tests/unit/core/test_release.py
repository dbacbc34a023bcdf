"""Releases of any content: saved, loaded, marked, copied."""

from __future__ import annotations

import copy
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tacit as tc
from support.asking import visits
from tacit import TacitError


@pytest.fixture(scope="module")
def release():
    asked = visits().group_by("hospital").agg(
        n=tc.count(), m=tc.mean("length_of_stay"), longest=tc.max("length_of_stay")
    )  # fmt: skip
    return asked.plan(epsilon=1).release()


def test_a_saved_release_comes_back_whole(release, tmp_path):
    release.save(tmp_path / "r.json")
    loaded = tc.Release.load(tmp_path / "r.json")
    assert loaded == release
    assert repr(loaded) == repr(release)
    assert loaded.to_csv() == release.to_csv()
    assert loaded.plot("n").get_title(loc="left") == release.plot("n").get_title(loc="left")
    rounded = release.rounded("n")
    rounded.save(tmp_path / "rounded.json")
    assert tc.Release.load(tmp_path / "rounded.json").marks == rounded.marks != ()


def test_a_new_process_reads_everycontent_named_release():
    sources = Path(tc.__file__).parent.rglob("*.py")
    contents = r"class \w+\((?:\w+, )*Content\b.*?kind: ClassVar\[str\] = \"([\w-]+)\""
    kinds = {
        kind for path in sources for kind in re.findall(contents, path.read_text(encoding="utf-8"), re.DOTALL)
    }
    assert {"answer-table", "trained-model", "federated-model", "series"} <= kinds
    asked = (
        "import sys; from tacit.core._release import content_named\n"
        "print([kind for kind in sys.argv[1:] if content_named(kind) is None])"
    )
    command = [sys.executable, "-c", asked, *sorted(kinds)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: {**d, "schema": "x"},
        lambda d: {**d, "kind": "nothing-known"},
        lambda d: {**d, "content": {}},
        lambda d: {**d, "content": None},
        lambda d: {**d, "marks": 3},
        lambda d: {k: v for k, v in d.items() if k != "certificate"},
        lambda _: [1, 2],
    ],
)
def test_a_file_that_is_not_a_release_is_refused(release, spoil, tmp_path):
    (tmp_path / "r.json").write_text(json.dumps(spoil(release.to_json())))
    with pytest.raises(TacitError) as refused:
        tc.Release.load(tmp_path / "r.json")
    assert refused.value.code == "bad-release"


def test_files_that_are_missing_or_not_json_are_refused(tmp_path):
    (tmp_path / "r.json").write_text("{")
    for name in ("r.json", "nothing.json"):
        with pytest.raises(TacitError) as refused:
            tc.Release.load(tmp_path / name)
        assert refused.value.code == "bad-release"


def test_a_release_can_be_copied_and_pickled(release):
    assert copy.copy(release) == copy.deepcopy(release) == pickle.loads(pickle.dumps(release)) == release


def test_what_the_content_offers_can_be_asked_of_the_release(release):
    assert release.confidence == 0.95
    assert list(release.keys) == ["hospital"]
    assert {"columns", "to_pandas", "content", "certificate"} <= set(dir(release))
    assert len(list(release)) == len(release) == 8
