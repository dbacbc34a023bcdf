"""Every code block of README and docs runs, in page order, with one namespace per page, in an empty folder.

The reference pages hold the public names, and no others. Links between pages lead somewhere.
"""

import ast
import doctest
import io
import re
import shlex
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import tacit
from support.command import installed
from support.command import tacit as tacit_command
from support.pages import FENCE, blocks

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts),
]
DIRECTIVE = re.compile(r"(?m)^\.\. auto(class|data|function|module):: (tacit[\w.]*)(?:\(\))?$")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


def runs(kind: str) -> list[Path]:
    return [page for page in PAGES if any(block[1] == kind for block in blocks(page))]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_readers_of_blocks_find_them():
    assert ROOT / "README.md" in runs("python")
    assert len(runs("python")) >= 3


@pytest.mark.parametrize("page", runs("python"), ids=name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace = {"__name__": "__main__"}
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for line, kind, body in blocks(page):
        if kind == "console":
            continue
        if ">>>" in body:
            test = doctest.DocTestParser().get_doctest(body, namespace, name(page), str(page), line)
            report: list[str] = []
            runner = doctest.DocTestRunner(optionflags=flags)
            runner.run(test, out=report.append, clear_globs=False)
            assert not runner.failures, f"{name(page)}:{line}\n{''.join(report)}"
            namespace = test.globs
        else:
            source, shown = "\n" * (line - 1) + body, io.StringIO()
            with redirect_stdout(shown):
                exec(compile(source, str(page), "exec"), namespace)
            if kind != "check":
                namespace["printed"] = shown.getvalue()  # for the check that follows


@pytest.mark.parametrize("page", runs("python"), ids=name)
def test_no_check_stands_in_code_that_people_read(page):
    assert "{code-cell}" not in page.read_text(), "write ```python: the other kind does not run"
    for line, kind, body in blocks(page):
        if kind == "python" and ">>>" not in body:
            found = [node.lineno for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Assert)]
            assert not found, f"{name(page)}:{line}: move it into a comment <!-- check ... -->"


@pytest.mark.parametrize("page", runs("console"), ids=name)
def test_console_lines_run(page, tmp_path):
    """Lines `$ tacit ...` run one after the other in one folder; `$ make` lines name targets that exist.

    The first line of the first tutorial starts the installed command.
    """
    makefile = (ROOT / "Makefile").read_text()
    run = installed if page.stem == "five_minutes" else tacit_command
    for line, kind, body in blocks(page):
        if kind != "console":
            continue
        for command in re.findall(r"^\$ (.*)$", body, flags=re.MULTILINE):
            words = shlex.split(command, comments=True)
            if words[0] == "make":
                for target in words[1:]:
                    assert re.search(rf"(?m)^{target}:", makefile), f"{name(page)}:{line}: {command}"
            elif words[0] == "tacit":
                done = run(*words[1:], cwd=tmp_path, NO_COLOR="1")
                run = tacit_command
                assert done.returncode == 0, f"{name(page)}:{line}: {command}\n{done.stdout}{done.stderr}"
            else:
                pytest.fail(f"{name(page)}:{line}: only make and tacit lines are checked, not {command!r}")


PAGE = """
```python
total = 1 + 1
total
print(total, 3)
```

<!-- check
assert printed.split() == ["2", "2", "3"]
-->

```python
from matplotlib.figure import Figure

picture = Figure()
picture.subplots().set_title("one & two", loc="left")
```
"""


def test_a_built_page_shows_what_its_code_prints_and_draws_but_no_checks(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    built, run_page = import_module("outputs"), import_module("run_page")
    (tmp_path / "page.md").write_text(PAGE)
    shown = run_page.run_python(tmp_path / "page.md")
    source = [PAGE]
    built._with_outputs(SimpleNamespace(tacit_outputs={"page": {"python": shown}}), "page", source)
    text = source[0]
    assert ":class: output\n\n2\n2 3\n" in text
    assert '<div class="output image"><img src="data:image/svg+xml;base64,' in text
    assert 'alt="Chart: one &amp; two">' in text
    assert "assert" not in text
    assert text.count("The noise of your own answers is always fresh.") == 1


def test_a_built_page_shows_what_commands_print(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    built, run_page = import_module("outputs"), import_module("run_page")
    page = "```console\n$ tacit explain --epsilon 0.5\n```\n"
    (tmp_path / "page.md").write_text(page)
    monkeypatch.setattr("sys.argv", [])
    source = [page]
    shown = {"console": run_page.run_console(tmp_path / "page.md")}
    built._with_outputs(SimpleNamespace(tacit_outputs={"page": shown}), "page", source)
    assert source[0].startswith("````console\n$ tacit explain --epsilon 0.5\nWhat epsilon 0.5 means\n")


def test_the_front_page_has_the_ten_lines_of_the_readme():
    first = [
        next(b for _, kind, b in blocks(ROOT / p) if kind == "python") for p in ("README.md", "docs/index.md")
    ]
    assert first[0] == first[1]


DECLARING = {"protect", "points", "trips", "graph", "genotypes", "stream"}
SHOWN = frozenset({"python", "py", "text"})


def declarations(page: Path) -> list[ast.Call]:
    """Return the declarations of data on a page, in the order of the page."""
    found = []
    for _, _, body in blocks(page, SHOWN):
        try:
            tree = ast.parse(re.sub(r"(?m)^(>>>|\.\.\.) ?", "", body))
        except SyntaxError:
            continue  # words, or a line with its output
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        found += [one for one in calls if re.fullmatch(r"tc\.(\w+)", ast.unparse(one.func))]
    return [one for one in found if one.func.attr in DECLARING]  # type: ignore[attr-defined]


def stays(declared: ast.Call) -> bool:
    """Whether the data is in a file or a table, so that a session that starts again finds it."""
    places = [one for one in declared.args[:1] if isinstance(one, ast.BinOp | ast.Constant)]
    named = any(word.arg == "engine" for word in declared.keywords)
    return named or any(getattr(one, "value", one) is not None for one in places)


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name in {"tutorial", "howto"}], ids=name)
def test_data_that_stays_has_a_ledger_that_stays(page):
    """Whoever copies a page must not copy a budget that is forgotten when Python ends."""
    declared = declarations(page)
    first = declared[:1] if page.parent.name == "tutorial" else []
    for one in [*first, *filter(stays, declared)]:
        assert any(word.arg == "ledger" for word in one.keywords), ast.unparse(one)


def documented() -> tuple[set[str], set[str]]:
    """Return the modules and the single names that the reference pages document."""
    pages = (ROOT / "docs/reference").glob("*.md")
    found = [match for page in pages for match in DIRECTIVE.findall(page.read_text())]
    return {path for kind, path in found if kind == "module"}, {
        path for kind, path in found if kind != "module"
    }


def test_the_reference_documents_public_names_only():
    _, names = documented()
    for path in sorted(names):
        room, _, name = path.rpartition(".")
        assert name in import_module(room).__all__, f"{path} is not a public name of {room}"


def test_every_public_name_is_in_the_reference():
    rooms, names = documented()
    inside = {name for room in rooms for name in import_module(room).__all__}
    for name in set(tacit.__all__) - {"__version__"}:
        is_room = isinstance(getattr(tacit, name), ModuleType)
        assert f"tacit.{name}" in (rooms if is_room else names) or name in inside, name
    single = {path.rpartition(".")[2] for path in names}
    for room, page in {"tables": "tables", "learn": "learn", "learn.federated": "federated"}.items():
        missing = set(import_module(f"tacit.{room}").__all__) - single - {"federated"}  # it has its own page
        assert not missing, f"docs/reference/{page}.md does not document {missing}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=name)
def test_links_between_pages_lead_somewhere(page):
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text()))
    for target in LINK.findall(text):
        assert (page.parent / target).exists(), f"{name(page)} links to {target}"
