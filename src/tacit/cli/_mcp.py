"""The ``tacit mcp`` command: a service for assistants, by the Model Context Protocol over standard input."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli._app import app

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
