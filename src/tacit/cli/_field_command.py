"""Commands that ask one kind of dataset: options from the declarations of its field, and one way to pay.

A field declares each question once (`tacit.core.QuestionKind`). Its arguments become options, which are read
and refused by the declaration, with the codes that Python and services use. `Terms` are the options that all
these commands have: the cost, the budget, who asks. ``tacit ask`` serves every kind of dataset that a service
can open, also those of other packages.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from tacit.cli._app import Misuse, app
from tacit.cli._context import note_dataset, note_ledger, note_options
from tacit.cli._ledger import check_first_charge, find_account, given_budget, left_now, whole_budget
from tacit.cli._options import (
    Asker,
    Total,
    budget_parts,
    number_text,
    read_limit_option,
    with_options,
)
from tacit.cli._output import JsonOption, OutputFiles, amount_facts, plan_facts, say, show_json
from tacit.errors import TacitError, bad_parameter, missing_file
from tacit.fixes import Choose, Say, Set
from tacit.parameters import Anything, Flag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tacit.accounting import Budget
    from tacit.core import Argument, Dataset, DatasetKind, Plan, Question, QuestionKind, Release
    from tacit.ledger import Ledger
    from tacit.parameters import Parameter


#: How the names of declared arguments and facts begin among the parameters of a command.
_ASKED, _FACT = "ask_", "fact_"
#: The kind whose questions are sentences: ``tacit ask visits.csv --mean stay`` is ``tacit ask table ...``.
_TABLE = "table"


@dataclass(frozen=True, kw_only=True)
class Terms(Total, Asker):
    """The options of every such command: what the answer may cost, and who pays."""

    budget: Annotated[
        float | None,
        typer.Option(help="The whole budget, in epsilon (or in rho, with --rho); needed the first time."),
    ] = None
    budget_delta: Annotated[
        float, typer.Option(help="The budget's delta; by default that of the question.")
    ] = 0
    ledger: Annotated[str, typer.Option(help="Where the budget is kept.")] = "tacit.ledger"
    name: Annotated[str | None, typer.Option(help="By default the name of the file.")] = None
    plan: Annotated[bool, typer.Option("--plan", help="Show the cost and the error; charge nothing.")] = False
    as_json: JsonOption = False

    def begin(self, source: Path, name: str = "") -> str:
        """Return the dataset's name; later refusals use it."""
        dataset_name = self.name or name or source.stem
        note_dataset(None, None, dataset_name)
        note_ledger(self.ledger)
        return dataset_name

    def answer(
        self, dataset_name: str, declare: Callable[..., Dataset], ask: Callable[[Any], Question[Any]],
        files: OutputFiles, figures: Callable[[Release[Any]], Mapping[str, object]],
    ) -> None:  # fmt: skip
        """Show the plan of a question; or charge the budget, answer, and show what is left.

        Parameters
        ----------
        dataset_name, declare
            The dataset's name, and how it is declared: ``declare(ledger=, budget=)``.
        ask
            Asks the question of the declared dataset.
        files, figures
            The files to write, and what ``--json`` shows of a release.
        """
        from tacit.ledger import Ledger

        goal = self.goal
        with Ledger.memory() as trial:  # a wrong question is refused before a ledger is made
            tried = given_budget(self.budget or 1, goal, self.budget_delta)
            account = None if self.budget else find_account(dataset_name, self.ledger)
            tried = tried if account is None else account.budget
            plan = ask(declare(ledger=trial, budget=tried)).plan(**goal)
            if self.plan:
                known = self.budget is not None or account is not None
                lines = left_now(dataset_name, self.ledger)
                _show_plan(plan, lines, as_json=self.as_json, budget=known)
                return
            if plan.instalments is not None:
                raise TacitError(
                    "release-or-run", "the answer comes in instalments", fix=Say("add --plan, or use Python")
                )
            budget = whole_budget(dataset_name, self.ledger, self.budget, goal, self.budget_delta)
            check_first_charge(dataset_name, self.ledger, plan, trial)
        with Ledger.open(self.ledger) as ledger:
            dataset = declare(ledger=ledger, budget=budget)
            release = ask(dataset).plan(**goal).release(who=self.who, purpose=self.purpose)
            remaining, notes = dataset.remaining, dataset.account_notes
        files.save(release)
        if self.as_json:
            show_json({
                **plan_facts(plan), **figures(release), "certificate": dict(release.certificate.fields),
                "files": [str(path) for _, path in files.asked],
                "left": amount_facts(remaining),
            })  # fmt: skip
            return
        say(repr(release), f"left: {remaining}", *notes)
        files.report()


def _show_plan(plan: Plan[Any], remaining: list[str], *, as_json: bool, budget: bool) -> None:
    """Show a plan; ``budget``: whether its account is known, and not only tried."""
    from tacit.core import plan_text

    facts = plan_facts(plan, budget=budget)
    show_json(facts) if as_json else say(plan_text(plan, left=False, budget=budget), *remaining)


def rows_of(release: Release[Any]) -> dict[str, object]:
    """Return the rows of a table of answers for ``--json``."""
    return {"rows": list(release.content), "confidence": release.content.confidence}


class DeclaredOptions(TyperCommand):
    """A command that takes the arguments of declared questions; their field is loaded when it is used."""

    kind: ClassVar[str]
    #: The questions that the command asks; none for all.
    named: ClassVar[tuple[str, ...]] = ()
    #: What may be named beside declared questions.
    also: ClassVar[tuple[str, ...]] = ()
    #: The options of arguments whose own name the command uses for something else.
    renamed: ClassVar[Mapping[str, str]] = {}
    #: Whether the command is made of declarations alone: it takes the facts of the dataset as options, and
    #: asks what services offer, questions of other packages too.
    declared: ClassVar[bool] = False

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the declared options, and those of every such command."""
        parameters = super().get_params(ctx)
        for parameter in parameters:
            if isinstance(parameter, TyperArgument) and parameter.name == "ask":
                parameter.help = f"One of: {', '.join([*self.questions, *self.also])}."
        return [*self._options, *parameters]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed. An option that nobody declared is a bad argument, as elsewhere."""
        try:
            return super().parse_args(ctx, args)
        except Misuse as misuse:
            if not hasattr(misuse, "option_name"):
                raise
            words = getattr(misuse, "format_message", misuse.__str__)()
            raise TacitError("bad-parameter", words, fix=Say(f"{ctx.command_path} --help")) from None

    @cached_property
    def questions(self) -> dict[str, QuestionKind[Any]]:
        """The questions that can be typed, by their names in the command."""
        from tacit.core import questions_of

        questions = questions_of(self.kind) if self.declared else declared_kind(self.kind).questions
        return {
            one.name.replace("_", "-"): one
            for one in questions
            if one.name in (self.named or [one.name]) and (one.served or not self.declared)
            if all(_typed(argument) for argument in one.arguments if argument.needed)
        }

    @cached_property
    def arguments(self) -> dict[str, tuple[Argument, str]]:
        """Each declared argument or fact that can be typed, with its option, by its name as a parameter."""
        used_options = {option for one in self.params for option in one.opts} | {"--help"}
        arguments: dict[str, tuple[Argument, str]] = {}
        facts = declared_kind(self.kind).facts if self.declared else ()
        question_arguments = [one for question in self.questions.values() for one in question.arguments]
        for start, argument in [(_FACT, one) for one in facts] + [
            (_ASKED, one) for one in question_arguments
        ]:
            name = start + argument.name
            if name not in arguments and _typed(argument) is not None:
                option = "--" + self.renamed.get(argument.name, argument.name).replace("_", "-")
                arguments[name] = (
                    argument,
                    f"--{name.replace('_', '-')}" if option in used_options else option,
                )
                used_options.add(arguments[name][1])
        return arguments

    @cached_property
    def _options(self) -> list[TyperOption]:
        return [_option(name, *found) for name, found in self.arguments.items()]


def _typed(argument: Argument) -> Parameter | None:
    """Return how an argument is read that somebody typed; None if Python alone can give it."""
    return next(
        (one for one in (argument.accepts, argument.served) if not isinstance(one, Anything | None)), None
    )


def _option(name: str, argument: Argument, option: str) -> TyperOption:
    accepts: Any = _typed(argument)
    flag = isinstance(accepts, Flag)
    words = argument.words or accepts.words
    more = "" if flag or not argument.words else f" ({accepts.words})"
    if isinstance(argument.default, str | int | Fraction) and not flag:
        default = argument.default
        more += f"; by default {default if isinstance(default, str) else number_text(default)}"
    return TyperOption(
        param_decls=[
            name,
            f"{option}/--no-{option[2:]}" if flag else option,
            *([option[1:]] * (len(option) == 3)),
        ],
        help=f"{words[0].upper()}{words[1:]}{more}.",
        type=bool if flag else str,
        default=None,
    )


@dataclass(frozen=True)
class Given:
    """The declared arguments and facts that were typed, and the command that adds their options."""

    command: Any
    values: Mapping[str, Any]

    @classmethod
    def of_command(cls, command: Any, values: Mapping[str, Any]) -> Self:
        """Return what was typed for a command; `with_options` calls it."""
        return cls(command, values)

    def text(self, name: str) -> str | None:
        """Return an argument as it was typed; None if it was not."""
        text: str | None = self.values[_ASKED + name]
        return text

    def question(self, name: str = "", **defaults: object) -> Callable[[Any], Question[Any]]:
        """Read the arguments of a question; return what asks it of a dataset.

        Parameters
        ----------
        name
            The question that was named, if the command asks several.
        defaults
            Arguments that the command gives where they were left out.
        """
        questions: dict[str, QuestionKind[Any]] = self.command.questions
        if name and name not in questions:
            names = (*questions, *self.command.also)
            raise bad_parameter("QUESTION", "one of those below", name, fix=Choose(names, given=name))
        kind = questions[name] if name else next(iter(questions.values()))
        arguments = {**defaults, **self._read(_ASKED, kind.arguments, f"with {name}")}
        kind.read(arguments)  # refuses what is missing
        return lambda dataset: getattr(dataset, kind.name)(**arguments)

    def facts(self) -> dict[str, Any]:
        """Read the facts of the dataset."""
        facts = declared_kind(self.command.kind).facts
        values = self._read(_FACT, facts)
        for fact in facts:
            if fact.needed and fact.name not in values:
                raise bad_parameter(
                    fact.name, fact.accepts.words, None, fix=Set(**{fact.name: fact.accepts.example})
                )
        return values

    def _read(self, start: str, arguments: Sequence[Argument], where: str = "") -> dict[str, Any]:
        """Read what was typed for these; refuse what was typed for others."""
        every: Mapping[str, tuple[Argument, str]] = self.command.arguments
        note_options({argument.name: option for argument, option in every.values()})
        typed = {
            name.removeprefix(start): value
            for name, value in self.values.items()
            if name.startswith(start) and value is not None
        }
        accepts: dict[str, Any] = {one.name: _typed(one) for one in arguments}
        for name, value in typed.items():
            if name not in accepts:
                option = every[start + name][1]
                raise bad_parameter(option, f"omitted {where}", value, fix=Say(f"leave {option} out"))
        return {
            name: (accepts[name].from_text if isinstance(value, str) else accepts[name].read)(name, value)
            for name, value in typed.items()
        }


@cache
def asks(
    kind: str, *named: str, also: tuple[str, ...] = (), declared: bool = False, **renamed: str
) -> type[DeclaredOptions]:
    """Return the class of a command that asks these questions of a kind, or any; see `DeclaredOptions`."""
    facts = {"kind": kind, "named": named, "also": also, "declared": declared, "renamed": renamed}
    return type("Asks", (DeclaredOptions,), facts)


def declared_kind(name: str) -> DatasetKind:
    """Load the declaration of a kind of dataset."""
    from tacit.core import registered

    kind: DatasetKind = registered(f"dataset.{name}")
    return kind


class _Kinds(TyperGroup):
    """The commands of all kinds, each made of the declarations of its field when it is used.

    Kinds whose columns have bounds and keys are left out: they are declared in a file or a folder, which the
    other commands read.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the kinds that can be asked, also those of other packages."""
        from tacit.core import dataset_kinds

        del ctx
        return [_TABLE, *(name for name in dataset_kinds() if _kind(name) is not None)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read a sentence about a table where neither a kind nor the help is named."""
        is_help = bool(args) and args[0] in ctx.help_option_names
        is_sentence = bool(args) and (
            args[0].startswith("-") or Path(args[0]).suffix or Path(args[0]).exists()
        )
        if is_sentence and not is_help and args[0] not in self.list_commands(ctx):
            args = [_TABLE, *args]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """Return the command of a kind; None if it cannot be asked here."""
        del ctx
        app_of_kind = typer.Typer(add_completion=False)
        if cmd_name == _TABLE:
            from tacit.cli._ask import ask_tables

            app_of_kind.command(_TABLE)(ask_tables)
            sentence: TyperCommand = typer.main.get_command(app_of_kind)  # type: ignore[assignment]
            return sentence
        if (kind := _kind(cmd_name)) is None:
            return None
        summary = f"Ask {kind.label}; the same question again is free."
        app_of_kind.command(cmd_name, cls=asks(cmd_name, declared=True), help=summary)(with_options(_ask))
        command: TyperCommand = typer.main.get_command(app_of_kind)  # type: ignore[assignment]
        return command


def _kind(name: str) -> DatasetKind | None:
    """Return a kind that can be declared by its facts alone; None for every other one."""
    from tacit.core import registered

    kind: DatasetKind | None = registered(f"dataset.{name}")
    return None if kind is None or kind.declare is None or kind.has_columns else kind


app.add_typer(
    typer.Typer(
        name="ask",
        cls=_Kinds,
        help="Ask a table in one sentence (tacit ask visits.csv --mean stay --by ward), or any other kind of "
        "data that a package declares; --help after the kind shows its options.",
        no_args_is_help=True,
    )
)


def _ask(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="The file with the data.")],
    ask: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    terms: Terms, files: OutputFiles, given: Given,
    *, unit: Annotated[str, typer.Option(help="Who is protected, as the kind names it.")] = "row",
    version: Annotated[int, typer.Option(help="The version of the data.")] = 1,
    limit: Annotated[
        list[str] | None, typer.Option("--limit", help="rows=5: how much of one unit counts; repeatable.")
    ] = None,
) -> None:  # fmt: skip
    files.check(".json")
    dataset_name = terms.begin(source)
    if files.plot is not None:
        raise bad_parameter(
            "--plot", "omitted", files.plot, fix=Say("write --out answer.json, and draw that")
        )
    if not source.exists():
        raise missing_file(source, "unknown-table")
    kind, facts = declared_kind(given.command.kind), given.facts()
    policy = {"unit": unit, "version": version, "limits": dict(map(read_limit_option, limit or ()))}

    def declared(*, ledger: Ledger, budget: Budget) -> Dataset:
        declare: Any = kind.declare
        priced = {**policy, "budget": budget_parts(budget)}
        dataset: Dataset = declare(source, name=dataset_name, policy=priced, facts=facts, ledger=ledger)
        return dataset

    terms.answer(
        dataset_name,
        declared,
        given.question(ask),
        files,
        lambda release: {"release": release.content.to_json()},
    )
