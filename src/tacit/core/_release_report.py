"""A release as a page for people who were not there: question, figure, tables, promise, check, citation."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.show import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.core._release import Release

_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
.wide{overflow-x:auto}table{border-collapse:collapse}
td,th{padding:.2rem .8rem .2rem 0;border-bottom:1px solid #8884;vertical-align:top}
figure{margin:1rem 0;max-width:36rem}
svg{width:100%;max-width:36rem;height:auto}li{overflow-wrap:anywhere}
pre{white-space:pre-wrap;overflow-wrap:anywhere}
@media print{body{max-width:none;margin:0}}
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_MOST_TABLES = 40
_MOST_FIGURES = 12
_MOST_LINES = 1000  # of a table; files and data frames have all


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
        said = [line for _, table in self._tables() for line in caption_of(table)]
        plan, kept = release.certificate.plan, release.certificate.kept
        compare = (
            "Whoever has the ledger can compare: tacit verify release.json, or release.problems(ledger) in "
            "Python. It finds a number, a name or a cost that was changed."
        )
        again = f"Plan {plan}. The same plan again gives the same answer, and is free."
        return [
            ("What the intervals cover, and what was cut", list(dict.fromkeys((*said, *release.marks)))),
            ("What is promised", [f"{name}: {text}" for name, text in self._promise()]),
            ("How to verify it", [*([f"The budget is {kept}."] if kept else []), compare, again]),
            ("How to cite it", [self.citation]),
        ]

    def _tables(self) -> Iterator[tuple[str, Any]]:
        for number, pair in enumerate(self.release.content.answer_tables()):
            if number < _MOST_TABLES:
                yield pair

    def _promise(self) -> list[tuple[str, str]]:
        page = self.release.certificate.report()
        return [(row[0], row[1]) for table in page.tables for row in table.rows]

    def text(self, width: int | None = None) -> str:
        """Write the page for a terminal."""
        own = getattr(self.release.content, "report", None)
        body = self.release.content.text(self.release.marks) if own is None else own().text(width)
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
            + f'<div class="wide">{lines_html(table, _MOST_LINES)}</div>'
            for caption, table in self._tables()
        )
        below = "".join(
            f"<h2>{escape(head)}</h2><ul>{''.join(f'<li>{escape(visible(one))}</li>' for one in lines)}</ul>"
            for head, lines in self.sections()
            if lines
        )
        shown = tables or f"<pre>{escape(self.release.content.text(self.release.marks))}</pre>"
        return (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            f'<meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{title}</title><style>{_STYLE}</style></head><body>"
            f"<h1><bdi>{title}</bdi></h1>{self._figures()}{shown}{below}</body></html>\n"
        )

    def _figures(self) -> str:
        """Draw the figures of the release."""
        drawn = self.release.figures()[:_MOST_FIGURES]
        return "".join(f"<figure>{one.svg()}</figure>" for one in drawn)

    def save(self, path: str | Path) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return self.text()
