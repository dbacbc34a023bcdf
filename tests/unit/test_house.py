"""The house is in order: one name for one idea, rooms with one door, functions that fit in the head."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import tacit

HOME = Path(tacit.__file__).parent
ROOT = HOME.parents[1]
MOST_LINES = 60
MOST_BRANCHES = 20


def modules():
    return sorted(path for path in HOME.rglob("*.py"))


def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


# vocabulary


def defined_names(paths):
    """Return classes and type aliases at the top of modules, with the modules that define them."""
    found = defaultdict(set)
    for path in paths:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef):
                found[node.name].add(str(path))
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                name = target.id if isinstance(target, ast.Name) else ""
                bare = name.lstrip("_")
                if bare[:1].isupper() and not bare.isupper() and len(bare) > 1 and not is_type_variable(node):
                    found[name].add(str(path))
    return found


def is_type_variable(node):
    return isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "TypeVar"


def test_a_name_stands_for_one_idea():
    repeated = {name: where for name, where in defined_names(modules()).items() if len(where) > 1}
    assert repeated == {}


def test_a_repeated_name_would_be_found(tmp_path):
    for name, text in (("a", "class Grid: ..."), ("b", "Grid = int | str"), ("c", "GRID = 3")):
        (tmp_path / f"{name}.py").write_text(text)
    found = defined_names(tmp_path.glob("*.py"))
    assert len(found["Grid"]) == 2
    assert "GRID" not in found


# doors


def imported(node):
    """Return the dotted names that an import statement brings in."""
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def is_module(dotted):
    inside = HOME.joinpath(*dotted.split(".")[1:])
    return inside.with_suffix(".py").exists() or inside.is_dir()


def deep_imports(path, room):
    """Return what a file imports from behind the door of another room.

    A door is a room's package, or a module in it without a leading underscore.
    """
    found = []
    for node in ast.walk(tree(path)):
        for dotted in imported(node):
            first, *rest = dotted.split(".")
            if (
                first == "tacit"
                and rest
                and rest[0] != room
                and any(part[0] == "_" for part in rest if part != "__version__")
            ):
                found.append(f"{path.name}: {dotted}")
    return found


def test_no_room_reaches_behind_the_door_of_another():
    found = []
    for path in modules():
        inside = path.relative_to(HOME).parts
        found += deep_imports(path, inside[0] if len(inside) > 1 else "")
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "from tacit.accounting._zcdp import rho_cap",
        "from tacit.noise import _bits",
        "import tacit.core._plan",
        "def f():\n    from tacit.core._plan import Plan",
        "from tacit.mechanisms import _laplace",
    ],
)
def test_a_deep_import_would_be_found(tmp_path, line):
    (tmp_path / "somewhere.py").write_text(line)
    room = line.split("tacit.")[1].split(".")[0].split()[0]
    assert len(deep_imports(tmp_path / "somewhere.py", "tables")) == 1
    assert deep_imports(tmp_path / "somewhere.py", room) == []


#: Modules that are doors by themselves: users and other rooms import them by name.
DOORS = {"accounting/textbook.py", "audit/lab/__init__.py"}


def test_modules_inside_a_room_start_with_an_underscore():
    open_ones = {
        str(path.relative_to(HOME))
        for path in modules()
        if len(path.relative_to(HOME).parts) > 1 and not path.name.startswith("_")
    }
    assert open_ones <= DOORS


@pytest.mark.parametrize("room", sorted(p.parent.name for p in HOME.glob("*/__init__.py")))
def test_what_a_room_exports_is_sorted_and_there(room):
    import importlib

    module = importlib.import_module(f"tacit.{room}")
    names = getattr(module, "__all__", [])
    assert list(names) == sorted(names, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    for name in names:
        assert hasattr(module, name), name


# size


def body_lines(function):
    """Return the number of lines of a function without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


def branches(function):
    kinds = (
        ast.If, ast.For, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension, ast.match_case,
        ast.BoolOp, ast.Assert,
    )  # fmt: skip
    return 1 + sum(isinstance(node, kinds) for node in ast.walk(function))


def test_functions_fit_in_the_head():
    large = [
        f"{path.relative_to(HOME)}: {node.name} has {body_lines(node)} lines, {branches(node)} branches"
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef)
        and (body_lines(node) > MOST_LINES or branches(node) > MOST_BRANCHES)
    ]
    assert large == []


def test_tests_mirror_the_rooms():
    rooms = {path.parent.name for path in HOME.glob("*/__init__.py")}
    folders = {path.name for path in (ROOT / "tests" / "unit").iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders <= rooms
    assert rooms - folders <= {"noise"} or rooms == folders


# furniture and nouns

#: Words that say nothing of what a variable holds. Loops inside one expression may use them.
VAGUE = frozenset(
    {
        "alone", "added", "apart", "asked", "both", "called", "counted", "drawn", "first", "found", "given",
        "held", "kept", "known", "last", "least", "left", "listed", "made", "measured", "most", "moved",
        "named", "near", "one", "opened", "own", "paid", "place", "read", "said", "seen", "shown", "taken",
        "there", "together", "wanted", "what", "who", "whole", "wide", "written", "wrong",
    }
)  # fmt: skip
LARGEST_FOLDER = 25
LARGEST_MODULE = 1_100
LARGEST_SHARE = 0.025


def bindings(module):
    """Return the names that a module binds: variables, loop variables of statements and arguments."""
    brief = {
        id(node)
        for inner in ast.walk(module)
        if isinstance(inner, ast.comprehension)
        for node in ast.walk(inner.target)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in brief:
            yield node.id
        elif isinstance(node, ast.arg) and node.arg not in {"self", "cls"}:
            yield node.arg


def share_of_vague(modules_):
    names = [name for module in modules_ for name in bindings(module)]
    return sum(name in VAGUE for name in names) / len(names)


def test_variables_are_named_by_nouns():
    assert share_of_vague(map(tree, modules())) <= LARGEST_SHARE


def test_vague_names_would_be_found():
    text = (
        "def f(given, rows):\n    found = [one for one in rows]\n    for one in found:\n        total = one"
    )
    assert list(bindings(ast.parse(text))) == ["given", "rows", "found", "one", "total"]
    assert share_of_vague([ast.parse(text)]) == 3 / 5


def test_no_folder_is_a_corridor():
    folders = defaultdict(list)
    for path in modules():
        folders[path.parent].append(path.name)
    assert {
        str(folder.relative_to(HOME)): len(names)
        for folder, names in folders.items()
        if len(names) > LARGEST_FOLDER
    } == {}


def test_a_big_idea_has_one_file_of_a_readable_size():
    assert [
        str(path.relative_to(HOME))
        for path in modules()
        if len(path.read_text().splitlines()) > LARGEST_MODULE
    ] == []


def names_assigned(path):
    return {getattr(node.targets[0], "id", "") for node in tree(path).body if isinstance(node, ast.Assign)}


def test_private_modules_have_no_list_of_their_names():
    private = [p for p in modules() if p.name.startswith("_") and p.stem not in {"__init__", "__main__"}]
    assert [str(path.relative_to(HOME)) for path in private if "__all__" in names_assigned(path)] == []


@pytest.mark.parametrize("folder", sorted({path.parent for path in modules()} - {HOME}))
def test_the_docstring_of_a_folder_leads_through_its_modules(folder):
    words = ast.get_docstring(tree(folder / "__init__.py"))
    names = [path.stem for path in folder.glob("_*.py") if path.name != "__init__.py"]
    assert set(names) - set(re.findall(r"\w+", words)) == set()


def test_every_docstring_begins_with_a_sentence():
    odd = []
    for path in modules():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
                words := ast.get_docstring(node)
            ):
                line = words.partition("\n\n")[0].replace("\n", " ").strip()
                if not line.endswith((".", "?", ":")) or line[0].islower():
                    odd.append(f"{path.relative_to(HOME)}: {getattr(node, 'name', 'module')}: {line[:80]}")
    assert odd == []


def arguments_in_words(function):
    """Return the names of arguments that the section `Parameters` of a docstring lists."""
    words = ast.get_docstring(function) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", words, re.DOTALL | re.MULTILINE)
    lines = section[1].splitlines() if section else []
    return {
        name.strip("* ") for line in lines if re.fullmatch(r"[\w*][\w*, ]*", line) for name in line.split(",")
    }


def arguments(function):
    inside = function.args
    more = [inside.vararg, inside.kwarg]
    every = [*inside.posonlyargs, *inside.args, *inside.kwonlyargs, *filter(None, more)]
    return {argument.arg for argument in every}


def test_docstrings_name_the_arguments_that_there_are():
    stale = {
        f"{path.relative_to(HOME)}: {node.name}": sorted(arguments_in_words(node) - arguments(node))
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef)
    }
    assert {where: names for where, names in stale.items() if names} == {}


def test_a_stale_argument_would_be_found():
    text = (
        'def f(rows):\n    """Count.\n\n    Parameters\n    ----------\n    given\n        The rows.\n    """'
    )
    [function] = ast.parse(text).body
    assert arguments_in_words(function) - arguments(function) == {"given"}


# the page about the design

WORD = re.compile(r"`([A-Z]\w+)`")
DESIGN = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def folders_of(room):
    return {path.name for path in (HOME / room).iterdir() if path.is_dir() and any(path.glob("*.py"))}


def test_the_design_lists_the_rooms():
    [rooms] = re.findall(r"^```text\n(fixes .*?)^```", DESIGN, re.DOTALL | re.MULTILINE)
    packages = {path.parent.name for path in HOME.glob("*/__init__.py")}
    modules_ = {path.stem for path in HOME.glob("*.py") if not path.name.startswith("__")}
    assert {line.split()[0] for line in rooms.splitlines()} == packages | modules_


def test_the_design_lists_the_folders_of_rooms():
    lines = re.findall(r"^\| `(\w+)` \| (`.*) \|$", DESIGN, re.MULTILINE)
    listed = {room: set(re.findall(r"`(\w+)`", words)) for room, words in lines if (HOME / room).is_dir()}
    rooms = {path.parent.name for path in HOME.glob("*/__init__.py")}
    assert listed == {room: folders_of(room) for room in rooms if folders_of(room)}


def test_the_words_of_the_design_are_classes():
    [words] = re.findall(r"^\| word \| meaning \|.*?\n\n", DESIGN, re.DOTALL | re.MULTILINE)
    terms = {term for cell in re.findall(r"^\|([^|]+)\|", words, re.MULTILINE) for term in WORD.findall(cell)}
    defined = defined_names(modules())
    assert len(terms) > 8
    assert terms - set(defined) == set()
