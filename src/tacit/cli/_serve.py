"""The ``tacit serve`` command: run the service, examine it, back it up, restore it.

``tacit mcp`` is its door for assistants: the Model Context Protocol over standard input.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli._app import app
from tacit.cli._output import JsonOption, say, show_json, typed
from tacit.errors import TacitError
from tacit.fixes import Do
from tacit.progress import is_terminal

if TYPE_CHECKING:
    from tacit.service import ServiceSettings


serve = typer.Typer(
    name="serve",
    help="Run the service: curators decide, analysts ask, auditors check, in the browser and by API.",
    invoke_without_command=True,
    no_args_is_help=False,
)
app.add_typer(serve)

_FolderOption = Annotated[
    Path, typer.Option("--folder", envvar="TACIT_SERVICE_FOLDER", help="Where the service keeps its files.")
]
_ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="The file of settings; by default service.toml in the folder."),
]


@serve.callback()
def run_service(
    context: typer.Context,
    *,
    folder: _FolderOption = Path("tacit-service"),
    config: _ConfigOption = None,
    address: Annotated[
        str | None,
        typer.Option(help="The address to listen on; one that others can reach needs TLS or a proxy."),
    ] = None,
    port: Annotated[int | None, typer.Option(help="The port; 8340 unless the settings name another.")] = None,
    workers: Annotated[int | None, typer.Option(help="How many web workers.")] = None,
    ledger: Annotated[str | None, typer.Option(help="A path or a postgresql:// address.")] = None,
    database: Annotated[str | None, typer.Option(help="A path or a postgresql:// address.")] = None,
    certificate: Annotated[str | None, typer.Option(help="The file of the TLS certificate.")] = None,
    private_key: Annotated[str | None, typer.Option(help="The file of the certificate's key.")] = None,
    behind_proxy: Annotated[
        bool | None, typer.Option("--behind-proxy", help="A proxy in front of the service ends TLS.")
    ] = None,
    metrics: Annotated[int | None, typer.Option(help="A port of this machine for Prometheus.")] = None,
    runner: Annotated[
        bool,
        typer.Option(
            "--runner/--no-runner", "--drawer/--no-drawer", help="Whether this command also runs the runner."
        ),
    ] = True,
) -> None:
    """Run the service until Ctrl-C; on the first start, write its settings and show the next steps."""
    _need_extra()
    options = {
        "address": address, "port": port, "workers": workers, "ledger": ledger, "database": database,
        "certificate": certificate, "private_key": private_key, "behind_proxy": behind_proxy,
        "metrics": metrics,
    }  # fmt: skip
    settings = {name: value for name, value in options.items() if value is not None}
    context.obj = (folder, config, settings)
    if context.invoked_subcommand is None:
        _run(_settings(folder, config, settings, is_first=True), runner=runner)


@serve.command("drawer", hidden=True)  # the name that it had before
@serve.command("runner")
def serve_runner_alone(context: typer.Context) -> None:
    """Run only the runner, next to ``tacit serve --no-runner``, so that it can have separate limits."""
    from tacit.service.operation import serve_runner_process

    serve_runner_process(_settings(*context.obj, is_first=False))


def _need_extra() -> None:
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise TacitError(
            "missing-extra",
            "the service needs packages that are not installed",
            fix=Do("install", package="tacit[service]"),
        ) from None


def _settings(
    folder: Path, config: Path | None, settings: dict[str, Any], *, is_first: bool
) -> ServiceSettings:
    """Read the settings; a first start writes them."""
    from tacit.service import ServiceSettings
    from tacit.service.operation import SETTINGS_FILE, write_first_settings

    file = config or folder / SETTINGS_FILE
    if config is None and not file.exists():
        if is_first:
            file = write_first_settings(folder)
            say(f"Wrote the settings of a new service to {file}.", "")
        else:
            raise TacitError(
                "bad-parameter", f"there is no service in the folder {folder}",
                fix=f"tacit serve --folder {typed(str(folder))}",
            )  # fmt: skip
    environ = {name: value for name, value in os.environ.items() if name != "TACIT_SERVICE_FOLDER"}
    return replace(ServiceSettings.read(file, environ), **settings)


def _run(settings: ServiceSettings, *, runner: bool) -> None:
    """Check where the service may listen, prepare its files, and run its processes."""
    from tacit.service.operation import Supervisor, open_socket, prepare, start_logging, start_notes

    settings = _checked_address(settings)
    os.umask(0o077)  # what the service writes is for its user alone
    quiet = is_terminal(sys.stderr)
    listening = open_socket(settings.address, settings.port)
    settings = replace(settings, port=listening.getsockname()[1])
    link, problem = prepare(settings)
    start_logging(requests=not quiet)
    supervisor = Supervisor(settings, listening, log_requests=not quiet, with_runner=runner)
    supervisor.run(lambda: _greet(settings, link, problem, start_notes(settings)))


def _greet(settings: ServiceSettings, link: str, problem: str, notes: list[str]) -> None:
    """Say where the service is and what to do next; a link must not be broken into lines."""
    lines = [f"The service is read-only: {problem}.", ""] if problem else []
    if link:
        file = settings.folder / "service.toml"
        lines += [
            "Nobody can sign in yet. Open this link once to create the first administrator:",
            "",
            f"    {link}",
            "",
            "Then sign in, invite people and give them roles.",
            f"Curators may protect the sources that are listed in {file}.",
        ]
    else:
        lines.append(f"The service runs at {settings.public_url}/sign-in")
    lines += ["", *(f"Note: {note}." for note in notes)] if notes else []
    typer.echo("\n".join([*lines, "", "Ctrl-C stops it."]))
    sys.stdout.flush()


def _checked_address(settings: ServiceSettings) -> ServiceSettings:
    """Refuse to send passwords and answers over a network without TLS."""
    try:
        ours = ipaddress.ip_address(settings.address).is_loopback
    except ValueError:
        ours = settings.address == "localhost"
    if not ours and not settings.over_tls:
        raise TacitError(
            "bad-parameter",
            f"the service does not listen on {settings.address} without TLS",
            why="passwords, tokens and answers would cross the network in the clear",
            fix="give --certificate FILE and --private-key FILE; or, if a proxy on the way ends TLS, "
            "--behind-proxy",
        )
    if settings.certificate and not Path(settings.certificate).is_file():
        raise TacitError(
            "bad-parameter", f"the certificate {settings.certificate} does not exist",
            fix="--certificate FILE, with the chain of certificates in PEM form",
        )  # fmt: skip
    if ours and not settings.hosts and not settings.behind_proxy:  # no other site may point its name here
        return replace(settings, hosts=f"localhost 127.0.0.1 [::1] {_shown(settings.address)}")
    return settings


def _shown(address: str) -> str:
    return f"[{address}]" if ":" in address else address


@serve.command("backup")
def back_up_service(
    context: typer.Context,
    target: Annotated[Path, typer.Argument(help="A new folder for the copy.")],
    *,
    with_key: Annotated[
        bool, typer.Option("--with-key", help="Copy the ledger's key too; by default it is kept apart.")
    ] = False,
) -> None:
    """Copy database, ledger and artifacts while the service runs; never the witness."""
    from tacit.service.operation import back_up

    report = back_up(_settings(*context.obj, is_first=False), target, with_key=with_key)
    say(f"Copied to {target}: {len(report.copied)} files.", *report.left)


@serve.command("restore")
def restore_service(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(help="The folder of a backup.")],
    *,
    key: Annotated[Path | None, typer.Option("--key", help="The copy of the ledger's key.")] = None,
    keep_tokens: Annotated[
        bool, typer.Option("--keep-tokens", help="Leave tokens valid; some may have been revoked since.")
    ] = False,
) -> None:
    """Restore a backup; replaces no file, and says whether the ledger is the newest copy."""
    from tacit.service.operation import restore

    report = restore(_settings(*context.obj, is_first=True), source, key=key, keep_tokens=keep_tokens)
    say(f"Restored {len(report.copied)} files from {source}.", *report.left)


@serve.command("migrate")
def migrate_service(context: typer.Context) -> None:
    """Bring the service's database to the form of this version; a start of the service does this too."""
    from tacit.service.operation import prepare

    settings = _settings(*context.obj, is_first=False)
    prepare(settings)
    say("The database and the ledger have the form of this version.")


@serve.command("check")
def check_service(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """Examine settings, permissions, disks, sources and clock; exit status 1 if something is wrong."""
    from dataclasses import asdict

    from tacit.service.operation import examine_service

    findings = examine_service(_settings(*context.obj, is_first=False))
    failures = [finding for finding in findings if finding.state == "wrong"]
    if as_json:
        show_json({"ok": not failures, "findings": [asdict(finding) for finding in findings]})
    else:
        say(*(f"{finding.state:5}  {finding.about}: {finding.words}" for finding in findings))
        say("", "Something is wrong: see above." if failures else "Nothing is wrong.")
    if failures:
        raise typer.Exit(1)


TokenFileOption = Annotated[
    Path | None,
    typer.Option("--token-file", help="The file that holds the token; by default TACIT_TOKEN holds it."),
]


@app.command()
def mcp(
    url: Annotated[str, typer.Argument(help="The address of the service.", metavar="URL")],
    *,
    token_file: TokenFileOption = None,
    account: Annotated[
        str | None, typer.Option("--account", "-a", help="The allotment that pays; by default the newest.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow plain http to another machine.")
    ] = False,
) -> None:
    """Let an assistant see public facts and prices of a service, and spend its own allotment there.

    It speaks the Model Context Protocol on standard input and output; an assistant starts it by itself.
    """
    from tacit.client import assistant_server, connect

    with connect(url, token=token_file, account=account, insecure=insecure) as connection:
        assistant_server(connection).run("stdio")
