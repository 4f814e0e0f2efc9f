"""`rung mcp`: runs the MCP server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

DEFAULT_PORT: Final = 8643
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


@click.command(short_help="Run an MCP server that recommends recovery steps.")
@click.option("--http", is_flag=True, help="Serve over streamable HTTP instead of standard input and output.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    type=click.Choice(LOOPBACK),
    help="Address to listen on, with --http.",
)
@click.option(
    "--port",
    default=DEFAULT_PORT,
    show_default=True,
    type=click.IntRange(1, 65_535),
    help="Port to listen on, with --http.",
)
@click.option("--print-token", is_flag=True, help="Print the token that clients need with --http, and exit.")
@click.option("--journal", "journal_at", metavar="PATH|URL", help="Journal to write to; created if missing.")
@click.option("--project", default="", help="Project name of the failures (default: this directory's name).")
@click.option(
    "--notes", metavar="DIR", help="Folder of the project's notes on failures (default: `notes` of rung.toml)."
)
@click.option("--no-notes", is_flag=True, help="Neither read nor write notes.")
def command(
    *,
    http: bool,
    host: str,
    port: int,
    print_token: bool,
    journal_at: str | None,
    project: str,
    notes: str | None,
    no_notes: bool,
) -> None:
    r"""Run an MCP server: tools to report a failure, get the next step, look up errors, detect loops and finish.

    It uses the policy of this project, and writes to the same journal. Over HTTP, clients need a token, which is
    made at the first start and kept in your data directory.

    \b
    claude mcp add rung -- rung mcp
    """
    if print_token:
        click.echo(_token())
        return
    try:
        from rung.mcp.server import make_server, run_http
    except ImportError as error:
        click.echo(f"rung: the MCP server needs an optional package ({error.name}): pip install 'rung[mcp]'", err=True)
        raise SystemExit(2) from None
    from rung.mcp.recovery_service import RecoveryService
    from rung.store import open_journal
    from rung.wiring.journals import journal_path
    from rung.wiring.notes import project_notes
    from rung.wiring.policies import PolicyStore

    name = project or Path.cwd().name
    with open_journal(journal_path(journal_at), project=name) as journal:
        policies = PolicyStore(journal)
        policies.pick(name)  # an invalid policy fails here, not in an agent's session
        known = project_notes(notes, off=no_notes)
        service = RecoveryService(journal, lambda: policies.pick(name), project=name, notes=known)
        server = make_server(service, host=host, port=port)
        if not http:
            server.run("stdio")
            return
        click.echo(f"rung: MCP at http://{host}:{port}/mcp; `rung mcp --print-token` prints the token", err=True)
        run_http(server, _token(), host=host, port=port)


def _token() -> str:
    """Return the token of MCP clients, beside the journal in the user's data directory."""
    from rung.core.domain.errors import FileError
    from rung.wiring.journals import default_path
    from rung.wiring.secret_file import load_secret

    path = default_path().with_name("mcp.token")
    try:
        return load_secret(str(path))
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror}") from None
