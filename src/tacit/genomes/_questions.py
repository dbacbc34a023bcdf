"""The questions about a cohort, each declared once, and the kind of dataset that they belong to."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.core import ANY_TOTAL, Argument, DatasetKind, Goal, QuestionKind, WireForm
from tacit.exact import rational, read_fraction
from tacit.genomes._association import draft_top_snps
from tacit.genomes._components import draft_components, read_places
from tacit.genomes._frequencies import draft_frequencies, reference_document
from tacit.genomes._hardy_weinberg import draft_hardy_weinberg
from tacit.genomes._missingness import draft_missingness
from tacit.genomes._summary_planning import draft_summary_statistics, read_covariates
from tacit.parameters import Anything, Choice, ColumnName, Flag, Integer, RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.core import JSON, Question

_PURE: frozenset[str] = frozenset()


def _exact(value: Fraction | None) -> JSON:
    return None if value is None else str(value)


def _read_exact(written: Any) -> Any:
    """Read a number, or several, or none."""
    if written is None:
        return None
    return tuple(map(read_fraction, written)) if isinstance(written, list) else read_fraction(written)


def _known_as(
    kind: str, takes: frozenset[str] = ANY_TOTAL, **written: Callable[[Question[Any]], JSON]
) -> WireForm:
    """Return the form of a question: its kind and its goal, with its arguments beside them.

    Parameters
    ----------
    written
        How each argument is written that is not JSON already.
    """

    def write(question: Question[Any], goal: Goal) -> JSON:
        given = {name: of(question) for name, of in written.items()}
        return {"kind": kind, "goal": goal.to_json(), **question.arguments, **given}

    def read(_dataset: object, request: Mapping[str, Any]) -> tuple[dict[str, Any], Goal] | None:
        if request.get("kind") != kind:
            return None
        given = {name: value for name, value in request.items() if name not in {"kind", "goal"}}
        exact = {name: _read_exact(given[name]) for name in ("clip", "threshold", "trait") if name in given}
        return given | exact, Goal.from_json(request["goal"], takes)

    return WireForm(write, read)


def _clip(question: Question[Any]) -> JSON:
    return _exact(question.arguments["clip"])


def _reference(question: Question[Any]) -> JSON:
    return reference_document(question.arguments["reference"])


def _variants(question: Question[Any]) -> JSON:
    """Write the variants as their numbers."""
    cohort: Any = question.dataset
    given = question.arguments["variants"]
    return None if given is None else [int(place) + 1 for place in read_places(cohort, given)]


def _covariates(question: Question[Any]) -> JSON:
    cohort: Any = question.dataset
    return list(read_covariates(cohort, question.arguments["covariates"]))


def _trait(question: Question[Any]) -> JSON:
    given = question.arguments["trait"]
    return None if given is None else [str(rational("trait", one, zero=True, negative=True)) for one in given]


_REFERENCE = Argument(
    "reference", Anything("a column of the variants, or public frequencies"),
    words="the public frequencies around which calls are counted",
    served=ColumnName(words="a column of the variants"),
)  # fmt: skip

FREQUENCIES = QuestionKind(
    name="frequencies", words="The frequency of an allele at every variant", draft=draft_frequencies,
    arguments=(
        Argument("by", Choice(("cluster",)), words="cluster, for frequencies by cluster"),
        _REFERENCE,
        Argument("clip", RealNumber(), words="with a reference: the largest norm of one person"),
        Argument("calls", Flag(), default=False, words="whether missing calls are released too"),
    ),
    wire=_known_as("frequencies", clip=_clip, reference=_reference),
)  # fmt: skip
HARDY_WEINBERG = QuestionKind(
    name="hardy_weinberg", words="Test Hardy-Weinberg equilibrium at every variant",
    draft=draft_hardy_weinberg, wire=_known_as("hardy-weinberg"),
)  # fmt: skip
MISSINGNESS = QuestionKind(
    name="missingness", words="The share of missing calls at every variant", draft=draft_missingness,
    arguments=(
        Argument("clip", RealNumber(), words="a person with more missing calls than this counts less"),
    ),
    wire=_known_as("missingness", clip=_clip),
)  # fmt: skip
COMPONENTS = QuestionKind(
    name="components", words="The loadings of principal components", draft=draft_components, served=False,
    arguments=(
        Argument("k", Integer(1), default=2, words="how many components"),
        _REFERENCE,
        Argument("clip", RealNumber(), words="with a reference: the largest norm of one person"),
        Argument("variants", Anything("names or numbers of variants"), words="the variants to use"),
    ),
    wire=_known_as("components", clip=_clip, reference=_reference, variants=_variants),
)  # fmt: skip
TOP_SNPS = QuestionKind(
    name="top_snps", words="Choose the SNPs with the strongest association", draft=draft_top_snps,
    takes=_PURE,
    arguments=(
        Argument("k", Integer(1), needed=True, words="how many SNPs"),
        Argument("test", Choice(("allelic", "trend")), default="allelic", words="which test scores them"),
        Argument("threshold", RealNumber(), default=Fraction(5, 10**8),
                 words="the p-value below which a SNP is significant"),
    ),
    wire=_known_as("top-snps", _PURE, threshold=lambda question: _exact(question.arguments["threshold"])),
)  # fmt: skip
SUMMARY_STATISTICS = QuestionKind(
    name="summary_statistics", words="Effects and p-values of all SNPs, from randomised phenotypes",
    draft=draft_summary_statistics, takes=_PURE, served=False,
    arguments=(
        Argument("covariates", Anything("names of declared covariates"), default=()),
        Argument("trait", Anything("the public mean and standard deviation of a trait")),
    ),
    wire=_known_as("summary-statistics", _PURE, covariates=_covariates, trait=_trait),
)  # fmt: skip

COHORT = DatasetKind(
    name="cohort",
    label="genotypes of a cohort",
    questions=(FREQUENCIES, HARDY_WEINBERG, MISSINGNESS, COMPONENTS, TOP_SNPS, SUMMARY_STATISTICS),
)
