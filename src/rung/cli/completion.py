"""`rung completion`: prints the completion script of a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from rung.cli.help_text import epilogue

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "_RUNG_COMPLETE"
# Where each shell looks for the script, and the command that puts it there.
INSTALL: Final[Mapping[str, tuple[str, ...]]] = {
    "bash": (
        "d=~/.local/share/bash-completion/completions",
        "mkdir -p $d && rung completion bash > $d/rung",
    ),
    "zsh": (
        "mkdir -p ~/.zfunc",
        "rung completion zsh > ~/.zfunc/_rung",
        "# once, in ~/.zshrc, before compinit:",
        "fpath+=(~/.zfunc); autoload -Uz compinit; compinit",
    ),
    "fish": (
        "mkdir -p ~/.config/fish/completions",
        "rung completion fish \\",
        "  > ~/.config/fish/completions/rung.fish",
    ),
}


@click.command(
    epilog=epilogue(
        "The script asks rung itself: commands, options, choices, and the names of templates, ladders, kinds and of "
        "the models in ./rung.toml. bash needs version 4.4 and the package bash-completion. The example "
        "below tries it in the running shell; these commands install it:",
        examples=('eval "$(rung completion bash)"',),
        table=tuple(
            line
            for shell, commands in INSTALL.items()
            for line in (f"Install it for {shell}:", *(f"  {one}" for one in commands))
        ),
    )
)
@click.argument("shell", type=click.Choice(tuple(INSTALL)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of SHELL; it begins with how to install it."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None  # noqa: S101  # click has a class for each of these shells
    script = found(ctx.find_root().command, {}, "rung", VARIABLE)
    # Not `source()`: for bash, it also runs the bash of this machine to look at its version.
    text = script.source_template % script.source_vars()
    directive, _, rest = text.lstrip().partition("\n")
    if not directive.startswith("#compdef"):  # zsh reads it from the first line
        directive, rest = "", text
    about = "\n".join(f"#   {line}" for line in INSTALL[shell])
    click.echo(f"{directive}\n# Completion of rung for {shell}. To install it:\n{about}\n{rest}".lstrip())
