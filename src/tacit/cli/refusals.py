"""Refusals in the words of the command: the library's ``fix`` speaks Python, whoever typed a command did not.

Every refusal that the command prints goes through `in_words_of_the_command`. What the library writes in
Python becomes an option (``--epsilon 0.5``), a line of the config with its place (``tacit.toml line 22,
under [datasets.visits.bounds]: stay = [0, 30]``) or SQL; what no rule knows becomes the advice for its code,
so that no Python is ever shown.
"""

from __future__ import annotations

import ast
import re
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.advice import ADVICE
from tacit.cli.declarations import option_text, toml_key, toml_value
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.tables import Config

__all__ = ["Asked", "in_words_of_the_command", "now_asking", "now_opening", "speaks_python"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command at hand is about: it makes ``the column's bounds`` a line of a file, or an option.

    Parameters
    ----------
    dataset, table
        The dataset's name, and its main table's in SQL.
    config
        The file with the declarations; None for ``tacit init``, which takes them as options.
    ledger
        Where the ledger is.
    sql
        The question.
    keyed
        The columns that have public keys.
    delta
        Whether the budget has a delta.
    """

    dataset: str = ""
    table: str = "visits"
    config: Path | None = None
    ledger: str = "LEDGER"
    sql: str = ""
    keyed: frozenset[str] = frozenset()
    delta: bool = False


_asked: ContextVar[Asked | None] = ContextVar("asked", default=None)


def now_asking(config: Path | None, declared: Config | None, name: str, sql: str = "") -> None:
    """Note what the command is about, for refusals to come."""
    facts = declared.datasets[name] if declared is not None else {}
    source = facts.get("source", name)
    table = next(iter(source)) if isinstance(source, dict) and source else name
    ledger = declared.ledger if declared is not None and declared.ledger else "LEDGER"
    keyed, delta = frozenset(facts.get("keys", ())), bool(facts.get("budget", {}).get("delta"))
    _asked.set(Asked(name, table, config, ledger, sql, keyed, delta))


def now_opening(ledger: str) -> None:
    """Note which ledger the command is about."""
    _asked.set(replace(_asked.get() or Asked(), ledger=ledger))


def in_words_of_the_command(error: TacitError, asked: Asked | None = None) -> TacitError:
    """Return the refusal as someone who typed a command can use it; same code, same sense."""
    about = asked or _asked.get() or Asked()
    fix = str(error.fix)
    for pattern, say in _RULES:
        fix = pattern.sub(lambda found, say=say: say(found, about, error), fix)  # type: ignore[misc]
    if speaks_python(fix) or not fix.strip():
        fix = ADVICE[error.code]
    return TacitError(error.code, _plain(error.what), why=_plain(error.why), fix=fix)


_PYTHON = re.compile(
    r"\btc\.|\b(Ledger|Cost|Budget|Filter|Question|Unit|Fraction)[.(]|\b[a-z_]+\.[a-z_]+\(|(?<![\w-])\.\w+\("
    r"|(?<![\w-])[a-z_]\w*=(?!=)|\w\[['\"]|\b(float|range|date)\(|\[\.\.\.\]|#|with_columns"
)
_TYPED = re.compile(r"--[a-z]+ (\"[^\"]*\"|\S+)|export \w+=\S+")


def speaks_python(text: str) -> bool:
    """Tell whether a text shows Python, options of the command and quoted commands aside.

    Examples
    --------
    >>> speaks_python("tc.protect(..., bounds={...})"), speaks_python("--bounds stay=0:30")
    (True, False)
    """
    return _PYTHON.search(_TYPED.sub("", text)) is not None


def _plain(text: str) -> str:
    """Say ``bounds of 'stay'`` for ``bounds['stay']``, ``a budget of epsilon 3`` for a ``Budget``."""
    text = re.sub(r"\b(bounds|keys|types|limits|weights)\[('[^']*')\]", r"\1 of \2", text)
    text = re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", text)
    text = re.sub(r"\bbudget (?=Budget\()", "", text)
    return re.sub(r"Budget\(([^()]*)\)", lambda found: f"a budget of {found[1].replace('=', ' ')}", text)


#: Numbers in a fix are copied; a range must come from elsewhere.
_PUBLIC = " (from public knowledge, not from the data)"


def _declared(about: Asked, table: str, facts: Mapping[str, object]) -> str:
    """Say where a fact is declared: the option of ``tacit init``, or the line of the config."""
    name, value = next(iter(facts.items()))
    if about.config is None and (option := option_text(table, name, value)):
        return option
    head = f"[datasets.{toml_key(about.dataset or 'NAME')}{'.' + table if table else ''}]"
    line = f"{toml_key(name)} = {toml_value(value, table)}"
    place = Path("tacit.toml") if about.config is None else about.config
    number = _line(place, head, toml_key(name))
    where = f"{place} line {number}, under {head}" if number else f"{place}, under {head}"
    return f"{where}: {line}"


def _line(file: Path, head: str, key: str) -> int | None:
    """Find the line of a key, or of the hint at it, below a heading; else the one after the heading."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    if head not in lines:
        return None
    start = lines.index(head) + 1
    for number, line in enumerate(lines[start:], start + 1):
        if line.startswith("["):
            break
        if re.match(rf"#? ?{re.escape(key)} *=", line):
            return number
    return start + 1


def _fact(found: re.Match[str], about: Asked, error: TacitError) -> str:
    try:
        facts = ast.literal_eval(found[2].replace(", ...", ""))
    except (ValueError, SyntaxError):
        return found[0]
    if found[1] == "bounds" and next(iter(facts), "") in _made_inside(about.sql):
        return (
            f"say the range in the question: {_clipped(about.sql, 'LOW', 'HIGH', next(iter(facts)))}{_PUBLIC}"
        )
    if error.code == "missing-bounds" and len(facts) == 1:
        told = _declared(about, "bounds", dict.fromkeys(facts, (0, 30)))
        return re.sub(r"\[0, 30\]$", "[LOW, HIGH]", re.sub('=0:30(?="?$)', "=LOW:HIGH", told)) + _PUBLIC
    named = {k: ["A", "B"] if v in (..., [...]) else v for k, v in facts.items()}
    return _declared(about, found[1], named) if named else found[0]


def _keys_needed(_: object, about: Asked, error: TacitError) -> str:
    """Name the groups that lack keys; delta is of use only where the budget has some."""
    told = re.search(r"^the groups of (.*) are not public", error.what)
    names = told[1].split(", ") if told else []
    missing = [name for name in names if name not in about.keyed] or names
    options = " ".join(option_text("keys", name, ["A", "B"]) for name in missing)
    head = f"[datasets.{toml_key(about.dataset)}.keys]"
    plain = about.config is not None and all(_mentioned(about.config, name) for name in missing)
    place = f" (or once for all in {about.config}, under {head})" if plain else ""
    return f"{options}{place}" + (", or --delta 1e-7 to select groups privately" if about.delta else "")


def _mentioned(file: Path, column: str) -> bool:
    """Tell whether the config speaks of a column, as init writes them all; an expression is none."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    return re.search(rf"^#? ?{re.escape(toml_key(column))} *=", text, re.MULTILINE) is not None


def _key_list(found: re.Match[str], about: Asked, error: TacitError) -> str:
    column = re.search(r"keys(?: of |\[)'([^']+)'", error.what)
    values = ast.literal_eval(found[1]) if "..." not in found[1] else ["A", "B"]
    return _declared(about, "keys", {column[1]: values}) if column else found[0]


def _options(found: re.Match[str], *_: object) -> str:
    return " ".join(f"--{k} {v}" for k, v in re.findall(r"(\w+)=([^,\s]+)", found[1]))


def _budget(found: re.Match[str], about: Asked, error: TacitError) -> str:
    name = re.search(r"^datasets\.(.*) has no budget$", error.what)
    place = Path("tacit.toml") if about.config is None else about.config
    number = _line(place, f"[datasets.{toml_key(name[1])}]", "budget") if name else None
    return f"{place} line {number}: {found[0]}" if number else found[0]


def _number(found: re.Match[str], *_: object) -> str:
    name = {"priors": "prior", "families": "family", "epsilons": "epsilon"}.get(found[1], found[1])
    return f"--{name} {found[2].replace('_', '') if name != 'delta' else '1e-6'}"


def _limit(found: re.Match[str], about: Asked, _: TacitError) -> str:
    return _declared(about, found[1], {found[2]: int(found[3])})


def _kind(found: re.Match[str], about: Asked, error: TacitError) -> str:
    column = re.search(r"types\['([^']+)'\]", error.what)
    return _declared(about, "types", {column[1]: found[1]}) if column else found[0]


def _grow(_: object, about: Asked, error: TacitError) -> str:
    """Say how the old budget is put back, and how a larger one is recorded."""
    told = re.search(r"account '(.*)' has budget Budget\((.*)\), not Budget\((.*)\)$", error.what)
    if told is None:
        return ADVICE[error.code]
    old, new = (dict(re.findall(r"(\w+)=([^,]+)", numbers)) for numbers in (told[2], told[3]))
    back = _declared(about, "", {"budget": old})
    option = " ".join(f"--{name} {value}" for name, value in new.items())
    act = f'tacit budget grow {about.ledger} --account {told[1]} {option} --statement "why" --who NAME'
    return f"{back}; or, if it was decided that more may be learned, record it: {act}"


def _word(found: re.Match[str], about: Asked, _: TacitError) -> str:
    name, value = found[1], found[3]
    if name in {"unit", "adjacency", "version"}:
        return _declared(about, "", {name: value})
    return f'--{name} "{value}"' if " " in value else f"--{name} {value}"


def _pair(found: re.Match[str], about: Asked, error: TacitError) -> str:
    low, high = found[1], found[2]
    if not about.sql:
        return f"--bounds {low} {high}"
    if error.code == "missing-bounds":
        low, high = "LOW", "HIGH"
    return f"say the range in the question: {_clipped(about.sql, low, high)}" + (
        _PUBLIC if low == "LOW" else ""
    )


def _clipped(sql: str, low: str, high: str, column: str = "") -> str:
    """Write the aggregate of a column (or the first of an expression) with its range in the question."""
    import sqlglot
    from sqlglot import expressions as exp

    for found in sqlglot.parse_one(sql, dialect="duckdb").find_all(exp.AggFunc):
        inner = found.this
        named = isinstance(inner, exp.Column | exp.Star)
        wanted = named and inner.name == column if column else not named and not isinstance(inner, exp.Least)
        if wanted and isinstance(inner, exp.Expr):
            text = inner.sql(dialect="duckdb")
            return found.sql(dialect="duckdb").replace(text, f"LEAST(GREATEST({text}, {low}), {high})", 1)
    return f"LEAST(GREATEST(..., {low}), {high})"


def _made_inside(sql: str) -> set[str]:
    """Return the names that a subquery gives: no declared column, so no line of the config speaks of them."""
    import sqlglot
    from sqlglot import expressions as exp
    from sqlglot.errors import SqlglotError

    try:
        inner = list(sqlglot.parse_one(sql, dialect="duckdb").find_all(exp.Select))[1:] if sql else []
    except SqlglotError:
        return set()
    return {name.alias for select in inner for name in select.expressions if isinstance(name, exp.Alias)}


def _question(_: object, about: Asked, __: TacitError) -> str:
    plain = about.table.isascii() and about.table.isidentifier()
    return f"SELECT COUNT(*) FROM {about.table if plain else chr(34) + about.table + chr(34)}"  # noqa: S608 - shown


def _said(text: str) -> Callable[[re.Match[str], Asked, TacitError], str]:
    return lambda found, about, _: found.expand(text.replace("{ledger}", about.ledger.replace("\\", "/")))


_NUMBERS = "epsilon|delta|rho|within|confidence|size|n|k|samples|trials|priors|families|epsilons"
_WORDS = "unit|adjacency|name|account|who|purpose|statement|statistic"
_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Asked, TacitError], str]], ...] = tuple(
    (re.compile(pattern), say)
    for pattern, say in (
        (r"(?:tc\.protect\(\.\.\., )?\b(bounds|keys|types|limits|public)=(\{[^{}]*\})\)?", _fact),
        (r"\.group_by\(.*\) or \.plan\(.*\)$", _keys_needed),
        (r"^budget = \{.*\}$", _budget),
        (r"^source = \"(.*)\"$", lambda found, about, _: _declared(about, "", {"source": found[1]})),
        (r"\bkeys=(\[[^()\[\]]*\])", _key_list),
        (r"\.?\bplan\(([^()]*)\)", _options),
        (r"  # or (.*)", _said(r" (or \1)")),
        (r"\bbounds=\(([\d.-]+), ([\d.-]+)\)(?: in the aggregate)?", _pair),
        (r"\b(epsilon|delta|rho) at most ([\d.e+-]*\d)", _said(r"--\1 \2 or less")),
        (r"SELECT COUNT\(\*\) FROM visits", _question),
        (r"Ledger\.open\((?:\.\.\.|url), key='([^']*)'\)(?: or set \w+)?",
         _said(r"export TACIT_LEDGER_KEY_FILE=\1")),
        (r"Ledger\.open\(\.\.\., witness='[^']*'\)", _said("keep the ledger in a folder that you may write")),
        (r"Ledger\.open\('[^']*'\) makes one",
         _said("name the ledger's file: the `ledger = ...` of tacit.toml; the first `tacit query` makes it")),
        (r"try again, or Ledger\.open\(\.\.\., wait=\d+\)",
         _said("try again when the other command has ended")),
        (r"Ledger\.open\('([^']*)'\)", _said(r'another file, here and as `ledger = "\1"` in tacit.toml')),
        (r"ledger\.unseal\([^()]*\)",
         _said('tacit budget unseal {ledger} --statement "disk checked" --who NAME')),
        (r"ledger\.grow\(\.\.\.\) records a larger budget", _grow),
        (r"ledger\.create_account\('([^']*)'[^()]*\)",
         _said("tacit budget {ledger} lists the accounts; "
               r"tacit budget open {ledger} --account \1 --parent DATASET --epsilon 0.5 makes one")),
        (r"`?tacit budget verify`?", _said("tacit budget verify {ledger}")),
        (r"compute it in steps with with_columns", _said("compute it in steps, in a WITH clause")),
        (r"release\.to_pandas\(\)", _said("--out answer.csv, and compute it there")),
        (r"tc\.count\(\), tc\.sum.*", _said("COUNT, SUM, AVG, MIN, MAX or COUNT(DISTINCT ...)")),
        (r"the file that release\.certificate\.save\(path\) wrote",
         _said('the file that tacit query "..." --certificate FILE.json wrote')),
        (r"keys=\[\(\.\.\.\), \.\.\.\] of those that matter",
         _said("group by fewer columns, or declare fewer keys")),
        (r"keys=\[\.\.\.\], or put its source in place", _said("put its source in place")),
        (r"\b(limits)\['([^']+)'\]=(\d+)", _limit),
        (r"^\"(number|text|boolean|date)\"$", _kind),
        (rf"\b({_WORDS})=(['\"])(.*?)\2", _word),
        (rf"\b({_NUMBERS})=([\d._e+-]*\d)", _number),
        (r"^\"(visits\.\w+)\"$", _said(r"a file such as \1")),
    )
)  # fmt: skip
