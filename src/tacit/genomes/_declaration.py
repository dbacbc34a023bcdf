"""The function ``tc.genotypes``: declare a cohort, who is protected, and what is public about it.

To try things out there is an invented cohort; nobody in it exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tacit.core import Unit, fixes_of, open_account, read_identity
from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Either, Set
from tacit.genomes._cohort import Cohort
from tacit.genomes._cohort_draft import PROTECTED
from tacit.genomes._sites import SiteList, read_sites
from tacit.genomes._sources import open_genotypes
from tacit.parameters import Choice, Integer, Listed, Mapped, Needed, Omitted

if TYPE_CHECKING:
    import os

    from tacit.accounting import Budget
    from tacit.ledger import Ledger


_STATUS = ("protected", "public")
_NAMES = Listed("names", '["north", "south"]', different=True)


def genotypes(
    source: Any,
    *,
    budget: Budget,
    name: str = "cohort",
    unit: str | Unit = "person",
    variants: object = None,
    clusters: Sequence[object] | None = None,
    cluster_names: Sequence[str] | None = None,
    people: int | Mapping[str, int] | None = None,
    phenotype: object = None,
    covariates: object = None,
    status: Literal["protected", "public"] = "protected",
    version: int = 1,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    parent: str | None = None,
) -> Cohort:
    """Declare the genotypes of a cohort: who is protected, and what is public.

    Guarantee
    ---------
    All releases of the cohort together are private for one person, with everything that the cohort has of
    that person: genotypes at all variants, cluster, phenotype. Neighbouring cohorts differ by one person
    more or less; if ``people`` is public, by one person who is replaced. The proof is in
    ``docs/proofs/genomes.md``. With ``unit="phenotype"`` they protect less: one participant's phenotype,
    against those who know genotypes, covariates and participants already. The account and every certificate
    carry the unit, so the two promises never mix. Relatives share much of their genomes: each is protected,
    a family is not.

    Parameters
    ----------
    source
        The path of a PLINK bed (with bim and fam), VCF, BCF or Zarr, or an array of people x variants with 0,
        1 or 2 copies of the counted allele, and -1 for a missing call.
    budget
        What may be learned in total.
    name, version
        Declared identity, to which the budget is bound.
    unit
        What is protected: a ``"person"``, or a participant's ``"phenotype"`` alone, which is what
        `Cohort.summary_statistics` needs. To ask both kinds of questions, declare the cohort twice, with a
        name and a budget for each.
    variants
        A public table with the columns chromosome, position, ref, alt and, for example, frequency (of alt, in
        a public reference). By default the site list of the file, which you thereby declare public: a list
        that was made from the cohort itself is a release of its own.
    clusters, cluster_names
        A label for each person, in the order of the source, and the public list of the labels. A person with
        another label, or with none, is in no cluster.
    people
        How many people there are, or how many are in each cluster, if this is public. By default it is
        private, and releases add noise to it; with ``unit="phenotype"`` it counts as known.
    phenotype, covariates, status
        For association tests: one value for each person, columns of values for each person, and whether
        these are public or protected.
    ledger
        A `Ledger`, or where to open one. None keeps it in memory.
    parent
        An account that several datasets share, as in `tacit.protect`.

    Examples
    --------
    >>> import numpy as np
    >>> import tacit as tc
    >>> calls = np.array([[0, 1, 2], [0, 2, -1]])     # two people, three variants
    >>> cohort = tc.genotypes(calls, budget=tc.Budget(rho=0.1))
    >>> len(cohort.sites), cohort.adjacency
    (3, 'add/remove')
    """
    from tacit.ledger import open_books, source_places

    protected = _read_unit(unit)
    Choice(_STATUS).read("status", status)
    clusters, phenotype = _reusable("clusters", clusters), _reusable("phenotype", phenotype)
    names = _read_names(clusters, cluster_names)
    total, sizes = _read_people(people, names)
    is_public = total is not None or protected == "phenotype"
    with fixes_of("tc.genotypes"):
        identity = read_identity(
            name=name, version=version, unit=protected, adjacency="replace" if is_public else "add/remove"
        )
    if protected == "phenotype":
        _check_phenotype(phenotype, status)
    reader = open_genotypes(source, None if variants is None else read_sites(variants))
    if is_public:
        total = reader.people() if total is None else total
        _check_people(total, reader.people(), "the source has {:,} people")
        for parameter, columns in (
            ("clusters", clusters),
            ("phenotype", phenotype),
            ("covariates", covariates),
        ):
            for column in columns.values() if isinstance(columns, Mapping) else (columns,):
                if hasattr(column, "__len__"):
                    _check_people(total, len(column), parameter + " has {:,} entries")
        _check_sizes(clusters, names, sizes)
    store = open_books(ledger, identity.name, source)
    cohort = Cohort(
        identity, store, reader.sites, total, names, sizes, status, reader, clusters, phenotype, covariates
    )
    with fixes_of("tc.genotypes"):
        open_account(identity, budget, store, parent=parent, places=source_places(source))
    return cohort


def _reusable(parameter: str, values: Any) -> Any:
    """Return values that can be read again: every release reads them, and a generator is empty then."""
    return (
        values
        if values is None or hasattr(values, "__len__")
        else Listed("values, one for each person", "[0, 1, 1]").read(parameter, values)
    )


def _read_unit(unit: object) -> str:
    """Read what is protected: whole people, or phenotypes alone."""
    return Choice(PROTECTED, "there is no proof for other units").read(
        "unit", str(unit) if isinstance(unit, Unit) else unit
    )


def _check_phenotype(phenotype: object, status: str) -> None:
    """Refuse a cohort that protects phenotypes alone, and has none to protect."""
    where = 'with unit="phenotype"'
    tests = "this unit is for tests of each SNP against a phenotype"
    Needed[object]([1, 0, 1], where, why=tests).read("phenotype", phenotype)
    Omitted(
        where, why="a public phenotype needs no protection", absent="protected",
        fix=Either(Set(status="protected"), Set(unit="person")),
    ).read("status", status)  # fmt: skip


def _read_names(clusters: object, cluster_names: Sequence[str] | None) -> tuple[str, ...]:
    """Read the public names of the clusters."""
    why = (
        "clusters says who is in which cluster, and cluster_names is the public list of clusters; "
        "without the list, a label that only one person has would show that this person is there"
    )
    if cluster_names is None:
        Omitted("without cluster_names", why=why, fix=Set(cluster_names=["north", "south"])).read(
            "clusters", None if clusters is None else "labels"
        )
        return ()
    Needed[object](["north", "north", "south"], "with cluster_names", why=why).read("clusters", clusters)
    names = [str(name) for name in _NAMES.read("cluster_names", cluster_names)]
    return tuple(_NAMES.read("cluster_names", names))


def _read_people(people: object, names: tuple[str, ...]) -> tuple[int | None, tuple[int, ...] | None]:
    """Read how many people there are, in total and by cluster, as far as that is public."""
    if people is None:
        return None, None
    if not isinstance(people, Mapping):
        return count("people", people, zero=False), None  # type: ignore[arg-type]
    Needed[Any](["north", "south"], "if people are given by cluster").read("cluster_names", names or None)
    sizes = Mapped(
        "the numbers of people by cluster", f"people={dict.fromkeys(names, 100)}", names=names,
        each=Integer(0), whole=True,
    ).read("people", people)  # fmt: skip
    return sum(sizes.values()), tuple(sizes[name] for name in names)


def _check_people(declared: int, counted_people: int, words: str, cluster: str = "") -> None:
    """Refuse public numbers that do not agree; nothing here is private."""
    if declared != counted_people:
        must_be = "the public number of people" + (f" in {cluster}" if cluster else "")
        fix = Set(people={cluster: counted_people} if cluster else counted_people)
        raise bad_parameter("people", must_be, declared, why=words.format(counted_people), fix=fix)


def _check_sizes(clusters: object, names: tuple[str, ...], sizes: tuple[int, ...] | None) -> None:
    if sizes is None:
        return
    labels = [str(one) for one in clusters]  # type: ignore[attr-defined]
    for name, size in zip(names, sizes, strict=True):
        _check_people(size, labels.count(name), "clusters has {:,} of them", name)


_PEOPLE, _VARIANTS = 2_000, 60
_PAIRS = (("A", "G"), ("C", "T"), ("G", "A"), ("T", "C"))


def example_cohort(
    *, budget: Budget, name: str = "example", ledger: Ledger | str | os.PathLike[str] | None = None
) -> Cohort:
    """Return an invented cohort: 2,000 people of two valleys, 60 variants, 1 % of the calls missing.

    The column ``frequency`` of its variants is a public reference; the two valleys differ from it a little.

    Examples
    --------
    >>> import tacit as tc
    >>> cohort = example_cohort(budget=tc.Budget(rho=1))
    >>> len(cohort.sites), cohort.cluster_names
    (60, ('north', 'south'))
    """
    steps = _uniform(4 * _VARIANTS + 2 * _PEOPLE * _VARIANTS)
    reference = 0.05 + 0.45 * steps[:_VARIANTS]
    drift = 0.24 * (steps[_VARIANTS : 3 * _VARIANTS].reshape(2, -1) - 0.5) * np.sqrt(reference)
    frequencies = np.clip(reference + drift, 0.01, 0.99)
    labels = ["north" if i % 5 < 3 else "south" for i in range(_PEOPLE)]
    chance = frequencies[[("north", "south").index(label) for label in labels]]
    draws = steps[4 * _VARIANTS :].reshape(2, _PEOPLE, _VARIANTS)
    calls = (draws < chance).sum(axis=0).astype(np.int8)
    calls[(draws[0] * 1_000 % 1) < 0.01] = -1
    pairs = [_PAIRS[i % 4] for i in range(_VARIANTS)]
    sites = SiteList(
        tuple(str(1 + i // 20) for i in range(_VARIANTS)),
        tuple(1_000_000 + 37_000 * (i % 20) for i in range(_VARIANTS)),
        tuple(ref for ref, _ in pairs),
        tuple(alt for _, alt in pairs),
        tuple(f"rs{900_000 + i}" for i in range(_VARIANTS)),
        {"frequency": tuple(np.round(reference, 4).tolist())},
    )
    return genotypes(
        calls, variants=sites, clusters=labels, cluster_names=("north", "south"), name=name, budget=budget,
        ledger=ledger,
    )  # fmt: skip


def _uniform(count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return numbers in [0, 1) that are always the same: a counter, mixed (Steele 2014, SplitMix64)."""
    x = (np.arange(1, count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))) / np.float64(2**64)
