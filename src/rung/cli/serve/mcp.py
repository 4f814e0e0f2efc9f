"""`rung mcp`: runs the MCP server."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from rung.cli.extras import needs_extra
from rung.cli.help_text import epilogue

DEFAULT_PORT: Final = 8643
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


@click.command(epilog=epilogue(examples=("claude mcp add rung -- rung mcp", "rung mcp --http --port 8643")))
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
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="Port to listen on, with --http; 0 picks a free port.",
)
@click.option("--print-token", is_flag=True, help="Print the token that clients need with --http, and exit.")
@click.option(
    "--journal",
    "journal_at",
    metavar="PATH|URL",
    help="Journal to write to; created if missing (default: this machine's).",
)
@click.option(
    "--project", metavar="NAME", default="", help="Project name of the failures (default: this directory's name)."
)
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
    """Run an MCP server: tools to report a failure, get the next step, look up errors, detect loops and finish.

    It uses the policy of this project, and writes to the same journal. Over HTTP, clients need a token, which is
    made at the first start and kept in your data directory.
    """
    if print_token:
        click.echo(_token())
        return
    with needs_extra("mcp", "the MCP server"):
        from rung.mcp.server import make_server, run_http
    from rung.mcp.recovery_service import RecoveryService
    from rung.store import open_journal
    from rung.wiring.journals import journal_path
    from rung.wiring.listening_socket import listen
    from rung.wiring.notes import project_notes
    from rung.wiring.policies import PolicyStore

    name = project or Path.cwd().name
    with open_journal(journal_path(journal_at), project=name) as journal:
        policies = PolicyStore(journal)
        policies.pick(name)  # an invalid policy fails here, not in an agent's session
        known = project_notes(notes, off=no_notes)
        service = RecoveryService(journal, lambda: policies.pick(name), project=name, notes=known)
        if not http:
            make_server(service).run("stdio")
            return
        token = _token()
        with listen("--port", host, port) as listening:
            port = listening.getsockname()[1]
            name = f"[{host}]" if ":" in host else host
            click.echo(f"rung: MCP at http://{name}:{port}/mcp; `rung mcp --print-token` prints the token", err=True)
            run_http(make_server(service, host=host, port=port), token, listening, host=host)


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
