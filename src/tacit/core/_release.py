"""The core's release: a content of any kind and the certificate with it. Free to post-process.

Its report is a page for people who were not there: question, figure, tables, promise, check, citation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import partial, wraps
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

from tacit.core._certificate import Certificate, content_digest, content_digests
from tacit.core._registry import registered
from tacit.core._tabular import joined, lacking
from tacit.errors import TacitError
from tacit.fixes import Code
from tacit.show import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from tacit.core._answer_table import AnswerTable
    from tacit.core._protocols import JSON
    from tacit.show import Figure


RELEASE_SCHEMA = "tacit/release/1"
ROUNDED = "non-negative whole numbers: "
#: What an answer of a batch says of its certificate.
BATCH_MARK = re.compile(r"one of \d+ answers of a batch; the certificate states what they cost together")

#: What is said of the values of a release that was saved before certificates bound values.
UNBOUND = (
    "the values are not bound by this certificate; to compare them with the stored release, ask for the same "
    "plan again: it is free, and the new certificate binds the values"
)


class Content:
    """What a release holds: a table of answers, a series, a surface, a model, a synthetic table.

    A subclass names its ``kind`` and can be written as JSON and read back; it may show itself better than the
    defaults do. A dataclass of plain numbers and texts needs nothing else. The release offers everything that
    its content offers.

    A content says which tables it has, and gets data frames and files from them. Several tables become one,
    with a first column that says from which table a line is.
    """

    __slots__ = ()
    kind: ClassVar[str] = ""
    #: What a release of this kind holds, in words; the kind itself if they are empty.
    described: ClassVar[str] = ""
    #: Methods that return another content of this kind, with a note that says what was done; through a
    #: release they return a release whose marks say so.
    changes: ClassVar[frozenset[str]] = frozenset()
    #: Methods that write the certificate's main facts into a file: a release passes its certificate to them.
    certified: ClassVar[frozenset[str]] = frozenset({"to_csv"})
    _kinds: ClassVar[dict[str, type[Content]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.kind:
            Content._kinds[cls.kind] = cls

    def to_json(self) -> JSON:
        """Return the content as JSON: by default the fields of a dataclass, by name."""
        return {one.name: getattr(self, one.name) for one in fields(cast("Any", self))}

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the content back."""
        return cls(**document)

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the content for a terminal; ``marks`` say what was done to it since it was released."""
        return "\n".join([repr(self), *marks])

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write the content for a notebook."""
        return f"<pre>{escape(self.text(marks))}</pre>"

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the tables of the content, each with words for what it is; nothing if it has no lines."""
        yield from ()

    def _as_one(self) -> AnswerTable:
        table = joined(self.answer_tables())
        if table is None:
            raise lacking(f"a release of the kind {self.kind!r}", "table", Code("release.content"))
        return table

    def to_dict(self) -> dict[str, Any]:
        """Return the lines by column: keys, then value, low and high of each column."""
        return self._as_one().to_dict()

    def to_pandas(self) -> pd.DataFrame:
        """Return the lines as a pandas data frame (extra ``pandas``)."""
        return self._as_one().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the lines as a Polars data frame (``pip install polars``)."""
        return self._as_one().to_polars()

    def to_arrow(self) -> pa.Table:
        """Return the lines as an Arrow table (extra ``pandas``)."""
        return self._as_one().to_arrow()

    def to_parquet(self, path: str | Path) -> None:
        """Write the lines to a Parquet file (extra ``pandas``)."""
        self._as_one().to_parquet(path)

    def to_csv(self, path: str | Path | None = None, *, certificate: Certificate | None = None) -> str:
        """Return the lines as CSV text, and write them to a file if a path is given.

        The facts of the release are written beside the file, as ``NAME.csv-metadata.json``.
        """
        return self._as_one().to_csv(path, certificate=certificate)

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return what the content shows as figures, the most important one first; ``what`` names one of them.

        A content without numbers to draw has none.
        """
        del what
        return ()

    def without_figure(self) -> TacitError:
        """Say why there is no figure."""
        subject = f"a release of the kind {self.kind!r}"
        return lacking(subject, "picture of its own", "draw it from its values")


C = TypeVar("C", bound=Content)


def _is_own_mark(mark: str, content: Content) -> bool:
    """Return whether Tacit itself writes this mark beside values that it did not change.

    No certificate binds marks. Values that are whole numbers already stay
    when they are rounded, and so do the answers of a batch.
    """
    rounded = mark.removeprefix(ROUNDED)
    columns = set(getattr(content, "columns", ()))
    return (
        BATCH_MARK.fullmatch(mark) is not None
        or mark in getattr(content, "notes", ())
        or (rounded != mark and set(rounded.split(", ")) <= columns)
    )


@dataclass(frozen=True, slots=True, repr=False)
class Release(Generic[C]):
    """A released content with its certificate; the release offers everything that its content offers.

    Parameters
    ----------
    content
        What was released: of a table question an `AnswerTable`, one line per group.
    certificate
        The machine-readable promise.
    marks
        What has been done to the content since it was released.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
    >>> release = visits.agg(n=tc.count()).plan(epsilon=1).release()
    >>> release.low <= release.value <= release.high
    True
    """

    content: C
    certificate: Certificate
    marks: tuple[str, ...] = ()
    #: What was asked, in words; a release that was read from a file has none, as no certificate binds words.
    question: str = field(default="", compare=False)
    #: The content of a file, and the digest of what stood there: a later version may write it otherwise.
    _read: tuple[C, str] | None = field(default=None, compare=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "content":
            raise AttributeError(name)
        attribute = getattr(self.content, name)
        if name in self.content.certified:
            return partial(attribute, certificate=self.certificate)
        return self._changing(attribute) if name in self.content.changes else attribute

    def _changing(self, method: Any) -> Any:
        """Return a method of the content as one of the release: its last note becomes a mark."""

        @wraps(method)
        def changing(*arguments: Any, **keywords: Any) -> Release[Any]:
            content = method(*arguments, **keywords)
            return self.changed(content, content.notes[-1])

        return changing

    def __dir__(self) -> list[str]:
        return sorted({*super(Release, self).__dir__(), *(n for n in dir(self.content) if n[0] != "_")})

    def __float__(self) -> float:
        value = getattr(self.content, "value", None)
        if isinstance(value, int | float):
            return float(value)
        raise TacitError(
            "bad-parameter",
            "this release is not one number",
            fix=Code('release["n"].value') if hasattr(self.content, "columns") else Code("release.content"),
        )

    def __len__(self) -> int:
        return len(self._listed())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._listed())

    def __getitem__(self, name: str | int) -> Any:
        return self._listed()[name]

    def _listed(self) -> Any:
        """Return the content where it has entries; another has none to count or to name.

        The entries of a batch are releases, which have the certificate of the whole.
        """
        if (entries := getattr(self.content, "listed", None)) is not None:
            return entries(self.certificate)
        if hasattr(self.content, "__getitem__"):
            return self.content
        raise lacking(f"a release of the kind {self.content.kind!r}", "columns", Code("release.content"))

    def changed(self, content: C, mark: str) -> Release[C]:
        """Return the release with another content and a mark that says what was done to it."""
        return replace(self, content=content, marks=(*self.marks, mark))

    def rounded(self, *columns: str) -> Release[Any]:
        """Return the release with these columns as non-negative whole numbers, and say so in its marks.

        Rounding up from below zero biases totals; intervals stay as they are.
        """
        content, names = self.content.rounded(*columns)  # type: ignore[attr-defined]
        return self.changed(content, f"{ROUNDED}{', '.join(names)}")

    def interval(self, covers: str = "noise") -> Release[Any]:
        """Return the release with intervals for the noise, or for noise and sampling together; free.

        ``"sampling"`` takes the rows as independent draws from a population and the intervals as statements
        about that population. It needs one row of each unit, and for means ``tc.mean(..., spread=True)``.

        Parameters
        ----------
        covers
            ``"noise"`` (as released) or ``"sampling"`` (noise and sampling).
        """
        view: Release[Any] = registered("release.interval")(self, covers)
        return view

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return what the content shows as figures: plain data, which prints, saves and shows itself.

        Parameters
        ----------
        what
            The name of one figure, such as a column; without it, all of them.
        """
        return tuple(
            replace(one, title=about_release(one.title, self.certificate))
            for one in self.content.figures(what)
        )

    def plot(self, column: Any = None, *, ax: Any = None) -> Any:
        """Draw the content (extra ``plot``); the title says what it shows and what it cost.

        Returns a picture that a notebook shows and ``savefig`` saves to a file; with ``ax``, returns these
        axes.
        """
        from tacit.core._tabular import needs

        needs("plot", "matplotlib", "tacit[plot]")
        figures = self.figures(column)
        if not figures:
            raise self.content.without_figure()
        return figures[0].picture(ax)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the lines to any program that reads Arrow (extra ``pandas``)."""
        return self.content.to_arrow().__arrow_c_stream__(requested_schema)

    def report(self, path: str | Path | None = None) -> ReleaseReport:
        """Return a page for people who were not there, and write it to a file if a path is given.

        It holds the question, a figure, the tables, what the intervals cover, what limits and bounds cut,
        what was promised, how to verify it, and a line to cite. The page is one HTML file without scripts;
        it loads nothing.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> page = visits.agg(n=tc.count()).plan(epsilon=1).release().report()
        >>> "n = count, of data" in page.html(), "epsilon 1" in page.text()
        (True, True)
        """
        page = ReleaseReport(self)
        if path is not None:
            page.save(path)
        return page

    def bound_by(self, ledgers: Sequence[Any]) -> Release[C]:
        """Return the release with a certificate that binds these values; the core calls it once."""
        return replace(self, certificate=self.certificate.bound_to(content_digests(self.content), ledgers))

    @property
    def values_bound(self) -> bool | None:
        """Whether the certificate was made for these values; None where it was made without values.

        False after a change: the marks say which. `problems` compares the certificate with its ledger.
        """
        bound = self.certificate.value_digests
        if bound is None:
            return None
        stored = self._read
        if stored is not None and stored[0] is self.content:
            return stored[1] in bound
        return content_digests(self.content)[0] in bound

    def matches(self, *ledgers: Any) -> bool:
        """Return whether the ledgers hold what paid for this release, and bind the values that stand here."""
        return not self.problems(*ledgers)

    def problems(self, *ledgers: Any) -> list[str]:
        """Say what does not agree with the ledger: the certificate, or the values; empty if everything does.

        Guarantee: a release of which a number, a key, a name or the certificate was edited has a problem,
        unless whoever edited it holds the ledger's key. Releases that were saved before certificates bound
        values have one too.

        Examples
        --------
        >>> import tacit as tc
        >>> ledger, stays = tc.Ledger.memory(), tc.tables.example_visits()
        >>> visits = tc.protect(
        ...     stays, name="visits", unit="patient_id", budget=tc.Budget(epsilon=1), ledger=ledger
        ... )
        >>> release = visits.agg(n=tc.count()).plan(epsilon=1).release()
        >>> release.matches(ledger), release.matches(tc.Ledger.memory())
        (True, False)
        """
        problem = self.values_problem
        return [*self.certificate.problems(*ledgers), *([problem] if problem else [])]

    @property
    def values_problem(self) -> str:
        """What is wrong with the values, by the certificate alone; empty if it was made for them."""
        if self.values_bound is None:
            return UNBOUND
        done = f" (done since: {'; '.join(self.marks)})" if self.marks else ""
        if not self.values_bound:
            return f"the values are not those that the certificate was made for{done}"
        strange = [mark for mark in self.marks if not _is_own_mark(mark, self.content)]
        return f"nobody vouches for what the file says of its values: {'; '.join(strange)}" if strange else ""

    def to_json(self) -> dict[str, JSON]:
        """Return the release as JSON: content, marks and certificate."""
        return {
            "schema": RELEASE_SCHEMA,
            "kind": self.content.kind,
            "content": self.content.to_json(),
            "marks": list(self.marks),
            "certificate": self.certificate.fields,
        }

    def save(self, path: str | Path) -> None:
        """Write the release to a file, with its certificate."""
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Release[Any]:
        """Read a release from the document that `to_json` returned."""
        source: object = document
        if not isinstance(source, Mapping) or source.get("schema") != RELEASE_SCHEMA:
            raise _unreadable(f"a release is a document with the schema {RELEASE_SCHEMA}")
        kind = content_named(str(document.get("kind")))
        if kind is None:
            raise _unreadable(f"neither Tacit nor an imported module has the kind {document.get('kind')!r}")
        try:
            content = kind.from_json(document["content"])
            marks = tuple(str(mark) for mark in document["marks"])
            fields = dict(document["certificate"])
            digest = content_digest(content.kind, document["content"])
            json.dumps([marks, fields], ensure_ascii=False).encode()  # raises for text that no file can hold
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
            raise _unreadable("its content does not have the form of this kind") from None
        release = Release(content, Certificate(fields), marks, _read=(content, digest))
        if not marks and release.values_bound is False:
            raise TacitError(
                "bad-release",
                "the values of this release are not those that its certificate was made for",
                why="a number, a group or a name was changed after the release was made",
                fix="use the file as release.save wrote it, or ask for the same plan again, which is free",
            )
        return release

    @classmethod
    def load(cls, path: str | Path) -> Release[Any]:
        """Read a release from a file that `save` wrote."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            raise _unreadable("the file cannot be read as JSON") from None
        return cls.from_json(document)

    def __repr__(self) -> str:
        return self.content.text(self._told())

    def _repr_html_(self) -> str:
        return self.content.html(self._told())

    def _told(self) -> tuple[str, ...]:
        """Return the marks, and that the charge will be forgotten."""
        durability = self.certificate.kept
        return (*self.marks, *([f"budget {durability}"] if durability else []))


def about_release(what: str, certificate: Certificate) -> str:
    """Return the title of a figure: which dataset it shows, what of it, and what this cost."""
    promised = certificate.fields.get("promised")
    spent = promised if isinstance(promised, Mapping) else {}
    cost = ", ".join(f"{key} {float(Fraction(str(value))):g}" for key, value in spent.items())
    return ", ".join(part for part in (f"{certificate.names}: {what}".strip(": "), cost) if part)


def content_named(kind: str) -> type[Content] | None:
    """Find a content by its kind; a room that was not needed so far is imported now."""
    if kind not in Content._kinds:  # noqa: SLF001 - the registry of this module
        registered(f"content.{kind}")
    return Content._kinds.get(kind)  # noqa: SLF001


def _unreadable(why: str) -> TacitError:
    return TacitError(
        "bad-release",
        "this is not a release that this version of Tacit can read",
        why=why,
        fix=Code("release.save(path) writes one"),
    )


_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
.wide{overflow-x:auto}table{border-collapse:collapse}
td,th{padding:.2rem .8rem .2rem 0;border-bottom:1px solid #8884;vertical-align:top}
figure{margin:1rem 0;max-width:36rem}
svg{width:100%;max-width:36rem;height:auto}li{overflow-wrap:anywhere}
pre{white-space:pre-wrap;overflow-wrap:anywhere}
@media (max-width:30rem){td,th{font-size:.875rem;padding-right:.5rem}ul{padding-left:1.2rem}}
@media print{body{max-width:none;margin:0}}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_MAX_TABLES = 40
_MAX_FIGURES = 12
_MAX_LINES = 1000  # of a table; files and data frames have all


@dataclass(frozen=True, eq=False)
class ReleaseReport:
    """The page of a release; `text` for a terminal, `html` as one file without scripts that loads nothing."""

    release: Release[Any]

    @property
    def title(self) -> str:
        """What was asked, in words where they are known."""
        release = self.release
        return release.question or f"{release.content.kind.replace('-', ' ')} of {release.certificate.names}"

    @property
    def citation(self) -> str:
        """One line that names the data, the software, the plan and the entry of the ledger."""
        certificate = self.release.certificate
        facts = certificate.facts
        entry = f", entry {facts['entry']} of its ledger" if facts.get("entry") else ""
        version = f", version {facts['version']}" if facts.get("version") else ""
        return (
            f"{facts['dataset']}{version}: {self.title}. Differentially private release ({self._cost}), "
            f"{facts['software']}, plan {certificate.plan}{entry}."
        )

    @property
    def _cost(self) -> str:
        return dict(self._promise()).get("promised", "cost not stated")

    def sections(self) -> list[tuple[str, list[str]]]:
        """Return what is said below the tables: headings, each with its sentences."""
        from tacit.core._answer_display import caption_of

        release = self.release
        captions = [line for _, table in self._tables() for line in caption_of(table)]
        plan, durability = release.certificate.plan, release.certificate.kept
        compare = (
            "Whoever has the ledger can compare: tacit verify release.json, or release.problems(ledger) in "
            "Python. It finds a number, a name or a cost that was changed."
        )
        again = f"Plan {plan}. The same plan again gives the same answer, and is free."
        return [
            ("What the intervals cover, and what was cut", list(dict.fromkeys((*captions, *release.marks)))),
            ("What is promised", [f"{name}: {text}" for name, text in self._promise()]),
            ("How to verify it", [*([f"The budget is {durability}."] if durability else []), compare, again]),
            ("How to cite it", [self.citation]),
        ]

    def _tables(self) -> Iterator[tuple[str, Any]]:
        for number, pair in enumerate(self.release.content.answer_tables()):
            if number < _MAX_TABLES:
                yield pair

    def _promise(self) -> list[tuple[str, str]]:
        page = self.release.certificate.report()
        return [(row[0], row[1]) for table in page.tables for row in table.rows]

    def text(self, width: int | None = None) -> str:
        """Write the page for a terminal."""
        report = getattr(self.release.content, "report", None)
        body = self.release.content.text(self.release.marks) if report is None else report().text(width)
        parts = [self.title, "", body]
        for head, lines in self.sections()[1:]:  # the tables above say what the intervals cover
            parts += ["", head, *(f"- {visible(line)}" for line in lines)] if lines else []
        return "\n".join(parts)

    def html(self) -> str:
        """Write the page as one HTML file: no script runs in it, and it loads nothing."""
        from tacit.core._answer_display import lines_html

        title = escape(visible(self.title))
        tables = "".join(
            (f"<h2><bdi>{escape(visible(caption))}</bdi></h2>" if caption else "")
            + f'<div class="wide">{lines_html(table, _MAX_LINES)}</div>'
            for caption, table in self._tables()
        )
        below = "".join(
            f"<h2>{escape(head)}</h2><ul>{''.join(f'<li>{escape(visible(one))}</li>' for one in lines)}</ul>"
            for head, lines in self.sections()
            if lines
        )
        tables_html = tables or f"<pre>{escape(self.release.content.text(self.release.marks))}</pre>"
        return (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            f'<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{title}</title><style>{_STYLE}</style></head><body>"
            f"<h1><bdi>{title}</bdi></h1>{self._figures()}{tables_html}{below}</body></html>\n"
        )

    def _figures(self) -> str:
        """Draw the figures of the release."""
        figures = self.release.figures()[:_MAX_FIGURES]
        return "".join(f"<figure>{one.svg()}</figure>" for one in figures)

    def save(self, path: str | Path) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return self.text()
