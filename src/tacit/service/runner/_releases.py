"""The operations about releases: read them, download them, check what they promise."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.fixes import Do
from tacit.service._operations import Answer, Download, Operation, needs
from tacit.service._rendering import chart_of, kind_words, lines_of, text_of, value_tables
from tacit.service.runner._clock import now
from tacit.service.runner._queries import question_words, read_page
from tacit.service.runner._release_documents import release_document, release_row, release_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.service._database import ServiceRow
    from tacit.service._operations import ServiceCall

_MAY_READ = needs("analyst", "curator", "auditor")


def get_release(call: ServiceCall) -> Answer:
    """Return a release: values, intervals, notes, what was charged, and its certificate."""
    row = release_row(call, call.path["release"])
    document = release_document(call, row)
    if call.is_page:
        release_json = document["document"]
        document |= {
            "question": _question(call, row),
            "tables": value_tables(release_json),
            "text": text_of(release_json),
            "words": kind_words(document["kind"]),
        }
    return Answer(document, headers={"etag": f'"{row["id"]}"'})


def _question(call: ServiceCall, row: ServiceRow) -> dict[str, Any] | None:
    """Return the question that a release answers, for the person who asked it."""
    query = call.service.database.row("SELECT * FROM queries WHERE id = ?", row["query"])
    return None if query is None else question_words(call, query)


def get_certificate(call: ServiceCall) -> Answer:
    """Return the certificate of a release alone, as `tacit check` reads it."""
    row = release_row(call, call.path["release"])
    return Answer(json.loads(row["document"])["certificate"], headers={"etag": f'"{row["id"]}"'})


def list_releases(call: ServiceCall) -> dict[str, Any]:
    """Return the caller's releases, newest first; with ``dataset``, curators and auditors see all of its."""
    rows, following = read_page(call, "releases", " AND shown_from <= ?", now())
    words = release_words(call.service.database, [row["id"] for row in rows])
    releases = [_listed(row, words[row["id"]]) for row in rows]
    return {"releases": releases, "next": following, "dataset": call.query.get("dataset", "")}


def _listed(row: ServiceRow, words: dict[str, Any]) -> dict[str, Any]:
    return {
        "release": row["id"], "query": row["query"] or None, "dataset": row["dataset"],
        "account": row["account"], "plan": row["plan"], "created": row["created"], "kind": words["kind"],
        "columns": words["columns"], "words": kind_words(words["kind"]),
    }  # fmt: skip


def csv_bytes(document: dict[str, Any]) -> bytes:
    """Return a release as CSV in which no text is a formula."""
    lines = lines_of(document)
    if lines is None:
        raise _no_form("CSV")
    return str(lines.to_csv()).encode("utf-8")


def parquet_bytes(document: dict[str, Any]) -> bytes:
    """Return a release as a Parquet file with all digits."""
    lines = lines_of(document)
    if lines is None:
        raise _no_form("Parquet")
    try:
        from pyarrow import parquet
    except ImportError:
        raise TacitError(
            "missing-extra",
            "Parquet needs a package that is not installed",
            fix=Do("install", package="pyarrow"),
        ) from None
    buffer = io.BytesIO()
    parquet.write_table(lines.to_arrow(), buffer)
    return buffer.getvalue()


def svg_bytes(document: dict[str, Any]) -> bytes:
    """Return a picture of a release: its intervals, or a map."""
    chart = chart_of(document)
    if chart is None:
        raise _no_form("SVG")
    return chart.file().encode("utf-8")


def _no_form(form: str) -> TacitError:
    """Say that there is no such file, as for every address that is not there."""
    return TacitError("not-found", f"this release cannot be written as {form}", fix="download it as JSON")


def _download(
    ending: str, media_type: str, write: Callable[[dict[str, Any]], bytes]
) -> Callable[[ServiceCall], Download]:
    def run(call: ServiceCall) -> Download:
        row = release_row(call, call.path["release"])
        return Download(write(json.loads(row["document"])), media_type, f"{row['id']}.{ending}")

    return run


def json_bytes(document: dict[str, Any]) -> bytes:
    """Return a release as the library reads it, with its certificate."""
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode("utf-8")


_FORMS: tuple[tuple[str, str, Callable[[dict[str, Any]], bytes]], ...] = (
    ("json", "application/json", json_bytes),
    ("csv", "text/csv; charset=utf-8", csv_bytes),
    ("parquet", "application/vnd.apache.parquet", parquet_bytes),
    ("svg", "image/svg+xml", svg_bytes),
)
RELEASE_OPERATIONS = (
    *(
        Operation(
            "GET", f"/releases/{{release}}.{ending}", _MAY_READ, _download(ending, media_type, write),
            summary=f"Download a release as {ending}",
        )
        for ending, media_type, write in _FORMS
    ),
    Operation(
        "GET", "/releases", _MAY_READ, list_releases, page="runner/releases.html", summary="List releases",
    ),
    Operation(
        "GET", "/releases/{release}", _MAY_READ, get_release, page="runner/release.html",
        summary="Show a release with its intervals",
    ),
    Operation(
        "GET", "/releases/{release}/certificate", _MAY_READ, get_certificate,
        summary="Show the certificate of a release",
    ),
)  # fmt: skip
