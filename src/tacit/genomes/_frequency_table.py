"""The content of a release of frequencies: one line for each variant, which VCF files can hold as well."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit.core import AnswerTable
from tacit.errors import TacitError
from tacit.fixes import Code, Say

if TYPE_CHECKING:
    from tacit.core import JSON, Value
    from tacit.show import Figure


@dataclass(frozen=True, slots=True, repr=False)
class AlleleFrequencies(AnswerTable):
    """Frequencies of the counted alleles, with an interval for each variant (and cluster).

    Parameters
    ----------
    spent
        What the release cost, for the file that it is written to: ``{"rho": 0.1}``.
    """

    kind: ClassVar[str] = "allele-frequencies"
    described: ClassVar[str] = "a table of allele frequencies"
    spent: tuple[tuple[str, float], ...] = ()

    def to_json(self) -> JSON:
        """Return the frequencies as JSON."""
        return {**AnswerTable.to_json(self), "spent": dict(self.spent)}  # type: ignore[dict-item]

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the frequencies back; raises ``ValueError`` where they are none."""
        read = super(AlleleFrequencies, cls).from_json(document)
        spent = tuple((str(name), float(value)) for name, value in document["spent"].items())
        return replace(read, spent=spent)

    def to_vcf(self, path: str | Path | None = None) -> str:
        """Return the frequencies as VCF text, and write it to a file if a path is given.

        The fields are AF, AF_LOW, AF_HIGH and AF_RHO (or AF_EPSILON and AF_DELTA). There are no AC, AN and
        NS, which are exact counts, and no genotypes. Of several clusters each has a field of its own:
        AF_north.
        """
        text = "".join(f"{line}\n" for line in self._vcf_lines())
        if path is not None:
            try:
                Path(path).write_text(text, encoding="utf-8")
            except OSError:
                raise TacitError(
                    "cannot-write", f"{path} could not be written", fix=Say("choose another file")
                ) from None
        return text

    def _vcf_lines(self) -> list[str]:
        if "chromosome" not in self.keys:
            raise TacitError(
                "bad-parameter",
                "a VCF file needs the chromosome, position and alleles of each variant",
                why="the variants of this cohort are only numbered",
                fix=Code("tc.genotypes(..., variants=table)"),
            )
        level = f"{100 * self.confidence:g} %"
        clusters = list(dict.fromkeys(self.keys.get("cluster", (None,))))
        spent = [(f"AF_{name.upper()}", value) for name, value in self.spent]
        tags = ["AF" if one is None else f"AF_{_tag(str(one))}" for one in clusters]
        every = [tag + end for tag in tags for end in ("", "_LOW", "_HIGH")] + [tag for tag, _ in spent]
        if len(set(every)) < len(every):  # clusters such as a b and a_b, a and a_LOW, or RHO
            tags = [f"{tag}_{number}" for number, tag in enumerate(tags, 1)]
        lines = ["##fileformat=VCFv4.3", "##source=Tacit, differentially private frequencies"]
        chromosomes = dict.fromkeys(_cell(one) for one in self.keys["chromosome"])
        lines += [f"##contig=<ID={one}>" for one in chromosomes]
        for tag, one in zip(tags, clusters, strict=True):
            whom = "" if one is None else f" in {_quoted(str(one))}"
            lines += [
                f'##INFO=<ID={tag},Number=A,Type=Float,Description="Noisy allele frequency{whom}">',
                f'##INFO=<ID={tag}_LOW,Number=A,Type=Float,Description="Low end, {level} for the noise">',
                f'##INFO=<ID={tag}_HIGH,Number=A,Type=Float,Description="High end, {level} for the noise">',
            ]
        lines += [
            f'##INFO=<ID={tag},Number=1,Type=Float,Description="Cost of all frequencies together">'
            for tag, _ in spent
        ]
        lines.append("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO")
        return lines + self._records(tags, [f"{tag}={value:.6g}" for tag, value in spent])

    def _records(self, tags: list[str], spent: list[str]) -> list[str]:
        """Return the line of each variant; the clusters of a variant stand beside each other."""
        cells, names = self.columns["frequency"], ("chromosome", "position", "id", "ref", "alt")
        found = []
        for start in range(0, len(self), len(tags)):
            info = []
            for i, tag in enumerate(tags, start):
                ends = zip(
                    (tag, f"{tag}_LOW", f"{tag}_HIGH"), (cells.value, cells.low, cells.high), strict=True
                )
                info += [f"{name}={_number(values[i])}" for name, values in ends]
            place = [_cell(self.keys[name][start]) for name in names]
            found.append("\t".join([*place, ".", ".", ";".join([*info, *spent])]))
        return found

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the frequencies in the order of the variants, with their intervals; a colour per cluster."""
        from tacit.genomes._frequency_figure import frequency_figure

        if what not in {None, "frequency"} or "frequency" not in self.columns:
            return AnswerTable.figures(self, what)
        return (frequency_figure(self),)


def _number(value: Value) -> str:
    """Return a number of a VCF field; a dot where the noise hides it."""
    return f"{value:.6g}" if isinstance(value, int | float) else "."


def _cell(value: object) -> str:
    """Return a cell that stays one: a tab or the end of a line in a name would start another."""
    return "_".join(str(value).split()) or "."


def _tag(name: str) -> str:
    """Return a name as the tag of a VCF field: letters, digits, underscores."""
    return "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in name)


def _quoted(name: str) -> str:
    """Return a name for a description in quotes: one line, with quotes and backslashes escaped."""
    line = "".join(sign if sign.isprintable() else " " for sign in name)
    return line.replace("\\", "\\\\").replace('"', '\\"')
