"""Every public function is called wrongly, one argument at a time: each call is refused in words.

The call that works is the one in the function's own documentation. Each of its arguments is then replaced by
something of another kind, by something out of range, and by an argument of an unknown name.
"""

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import warnings

import pytest

import tacit
from tacit.errors import CODES, TacitError
from tacit.fixes import Choose, Code, Set
from tacit.ledger import forget_memory

ROOMS = (
    "accounting", "audit", "audit.lab", "client", "core", "explain", "genomes", "graphs", "inference",
    "ledger", "maps", "mechanisms", "noise", "streams", "surveys", "synth", "tables",
)  # fmt: skip
#: Declared rows, for the calls of functions whose own documentation shows no call.
_VISITS = """
>>> import pandas as pd
>>> frame = pd.DataFrame({"patient_id": [1, 2, 2], "age": [30, 40, 50]})
>>> visits = tc.protect(frame, unit="patient_id", budget=tc.Budget(epsilon=9), bounds={"age": (0, 100)})
>>> rows = visits.limit(rows=5)
"""
#: These calls. A room for programs (show, the service behind its address) has no page, and is not among them.
CALLS = {
    **{
        f"tables.{name}": f'>>> tc.{name}("age")'
        for name in ("count_distinct", "max", "mean", "median", "min", "std", "sum", "variance")
    },
    "tables.histogram": '>>> tc.histogram("age", edges=[0, 50, 100])',
    "tables.quantiles": '>>> tc.quantiles("age", levels=[0.25, 0.75])',
    "tables.Expr.between": '>>> tc.col("age").between(1, 2)',
    "tables.Expr.clip": '>>> tc.col("age").clip(1, 2)',
    "tables.Expr.fill_null": '>>> tc.col("age").fill_null(1)',
    "tables.Expr.width_bucket": '>>> tc.col("age").width_bucket(0, 100, 10)',
    **{
        f"tables.{owner}.{name}": f"{_VISITS}>>> {receiver}.{name}({arguments})"
        for owner, receiver in (("Rows", "rows"), ("TableDataset", "visits"))
        for name, arguments in (
            ("group_by", '"age"'),
            ("limit", "rows=2"),
            ("per_unit", 'x=tc.mean("age")'),
            ("sample", "0.5"),
            ("select", '"age"'),
            ("where", '"age > 3"'),
            ("with_columns", 'old="age > 60"'),
        )
    },
    "tables.Rows.agg": f"{_VISITS}>>> rows.agg(n=tc.count())",
    "graphs.Graph": '>>> tc.graph([(0, 1)], name="g", unit="edge", budget=tc.Budget(epsilon=1), nodes=4)',
    "service.ListedSource": '>>> ListedSource("visits", "visits.parquet")',
}
LEARNING = ("learn", "learn.federated")
#: What is handed to the caller's own function, which may fail in its own way; and what trains for a minute.
NOT_REFUSED = {"audit.audit", "learn.Trainer", "learn.Trainer.plan"}


class Wrong:
    """No function takes this."""


def _public(rooms=ROOMS):
    """Return every public function, class and method of the rooms, with the name that its calls have."""
    seen = set()
    for room in rooms:
        package = importlib.import_module(f"tacit.{room}")
        for name in package.__all__:
            made = getattr(package, name)
            if id(made) in seen or not getattr(made, "__module__", "").startswith(f"tacit.{room}"):
                continue
            if room == "core" and name not in tacit.__all__:
                continue  # for other rooms
            seen.add(id(made))
            if inspect.isclass(made) or inspect.isfunction(made):
                yield f"{room}.{name}", made, (CALLS.get(f"{room}.{name}"), made.__doc__)
            if inspect.isclass(made):
                for method, value in vars(made).items():
                    inner = value.__func__ if isinstance(value, classmethod | staticmethod) else value
                    if not method.startswith("_") and inspect.isfunction(inner):
                        label = f"{room}.{name}.{method}"
                        yield label, inner, (CALLS.get(label), inner.__doc__, made.__doc__)


def _first_call(texts, name):
    """Return the statements before the first documented call of a function, and the call."""
    for text in texts:
        before = []
        for example in doctest.DocTestParser().get_examples(text or ""):
            for statement in ast.parse(example.source).body:
                for node in ast.walk(statement):
                    is_call = isinstance(node, ast.Call)
                    if is_call and getattr(node.func, "attr", getattr(node.func, "id", "")) == name:
                        return before, node
                before.append(statement)
    return None


def _run(before, call, module):
    """Return the function of a documented call with its arguments; None if the example needs a place."""
    names = dict(vars(importlib.import_module(module)))
    names["tc"] = importlib.import_module("tacit")

    def value(node):
        return eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<example>", "eval"), names)

    if before:
        exec(compile(ast.Module(before, []), "<example>", "exec"), names)
    if any(isinstance(one, ast.Starred) for one in call.args) or any(
        one.arg is None for one in call.keywords
    ):
        return None
    return value(call.func), [value(one) for one in call.args], {k.arg: value(k.value) for k in call.keywords}


def _out_of_range(parameter, given):
    text = str(parameter.annotation)
    if any(word in text for word in ("int", "Number", "float")) or isinstance(given, int | float):
        return -1
    return "" if "str" in text else float("nan")


def _variants(function, args, given):
    """Return the wrong calls: the parameter, the way, the arguments."""
    signature = inspect.signature(function)
    bound = signature.bind(*args, **given).arguments
    for place, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            continue
        wrong = {"another kind": Wrong(), "out of range": _out_of_range(parameter, bound.get(name))}
        for way, value in wrong.items():
            if place < len(args) and name not in given:
                yield name, way, [*args[:place], value, *args[place + 1 :]], given
            else:
                yield name, way, args, {**given, name: value}
        if not any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values()):
            yield name, "unknown name", args, {**given, f"{name}_": 1}


def _python(fix):
    """Return the Python of a fix that is Python; None for other advice."""
    match fix:
        case Code(python):
            return python
        case Set(values, upper):
            return None if upper or any(v is ... for v in values.values()) else f"f({fix})"
        case _:
            return None


def _make_wrong_calls(folder, rooms=ROOMS):
    """Make all wrong calls of the rooms; return what came of each, and of the value that its fix names."""
    found, pasted = [], []
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.chdir(folder)
        for label, function, texts in _public(rooms):
            documented = _first_call(texts, label.rpartition(".")[2])
            if documented is None or label in NOT_REFUSED:
                continue
            forget_memory()  # each example declares its own dataset
            with contextlib.redirect_stdout(io.StringIO()):
                try:
                    made = _run(*documented, function.__module__)
                except Exception:
                    continue
            try:
                wrong = [] if made is None else list(_variants(*made))
            except TypeError:  # the call that was found is that of another function
                continue
            for name, way, args, given in wrong:
                with contextlib.redirect_stdout(io.StringIO()):
                    try:
                        made[0](*args, **given)
                        outcome = None
                    except Exception as error:
                        outcome = error
                found.append((f"{label}({name}) {way}", outcome))
                pasted.append((f"{label}({name}) {way}", _pasted(made[0], name, args, given, outcome)))
    return found, pasted


@pytest.fixture(scope="module")
def all_calls(tmp_path_factory):
    return _make_wrong_calls(tmp_path_factory.mktemp("wrong"))


@pytest.fixture(scope="module")
def outcomes(all_calls):
    return all_calls[0]


def _pasted(function, name, args, given, refused):
    """Call again with the value that the fix names; return the second error, or None where it works."""
    fix = getattr(refused, "fix", None)
    if not isinstance(fix, Set) or fix.upper or set(fix.values) != {name}:
        return "no value"
    if not inspect.isclass(function):
        return "no value"  # an answer may take its time
    place = list(inspect.signature(function).parameters).index(name)
    if place < len(args) and name not in given:
        args = [*args[:place], fix.values[name], *args[place + 1 :]]
    else:
        given = {**given, **fix.values}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            function(*args, **given)
    except TacitError as error:  # perhaps of another parameter, which does not go with the new value
        return str(error) if error.what.startswith(f"{name} must be") else None
    except Exception as error:
        return repr(error)
    return None


def test_the_value_that_a_fix_names_works_when_it_is_pasted(all_calls):
    tried = [(call, error) for call, error in all_calls[1] if error != "no value"]
    assert len(tried) > 300
    still = [f"{call} -> {error}" for call, error in tried if error is not None]
    assert not still, "\n".join(still)


def test_no_wrong_call_ends_in_a_bare_error(outcomes):
    allowed = TacitError | OSError | None  # the operating system names the file that is wrong
    raw = [f"{call}: {error!r}" for call, error in outcomes if not isinstance(error, allowed)]
    assert not raw, "; ".join(raw)


def test_at_least_twelve_hundred_wrong_calls_are_refused_with_a_code_and_a_fix(outcomes):
    refused = [(call, error) for call, error in outcomes if isinstance(error, TacitError)]
    assert len(refused) >= 1_200
    assert all(error.code in CODES for _, error in refused)
    assert [call for call, error in refused if not str(error.fix)] == []


def test_every_unknown_name_is_refused_by_name(outcomes):
    unknown = [(call, error) for call, error in outcomes if call.endswith("unknown name")]
    assert len(unknown) > 500
    assert [call for call, error in unknown if not isinstance(error, TacitError)] == []
    named = [isinstance(error.fix, Choose) for _, error in unknown]
    assert sum(named) / len(named) > 0.9


def test_the_python_of_every_fix_can_be_read(outcomes):
    lines = {_python(error.fix) for _, error in outcomes if isinstance(error, TacitError)} - {None}
    assert len(lines) > 100
    broken = []
    for line in lines:
        try:
            ast.parse(line if "..." not in line else line.replace("(..., ", "("))
        except SyntaxError:
            broken.append(line)
    assert broken == []


def test_wrong_calls_of_learning_are_refused_with_a_fix(tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("torch")
    found, _ = _make_wrong_calls(tmp_path, LEARNING)
    refused = [error for _, error in found if isinstance(error, TacitError)]
    assert len(refused) > 500
    assert all(error.code in CODES and str(error.fix) for error in refused)
    by_convention = ("(X) ", "(y) ")  # scikit-learn's estimators refuse data by its own ValueError
    bare = [
        f"{call}: {error!r}"
        for call, error in found
        if not isinstance(error, TacitError | None)
        and not (isinstance(error, ValueError) and any(one in call for one in by_convention))
    ]
    assert not bare, "; ".join(bare)
