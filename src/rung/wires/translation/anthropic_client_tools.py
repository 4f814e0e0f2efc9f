"""Tools of Anthropic's API that the client runs itself: as functions for other providers.

Anthropic's models know their arguments without a schema. Calls of them look like calls of any other tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rung.wires.translation.conversation import Family, ProviderTool, ToolDefinition

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT: Final = {"type": "string"}
_RANGE: Final = {"type": "array", "items": {"type": "integer"}}


def _schema(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


_COMMANDS: Final = {"type": "string", "enum": ["view", "create", "str_replace", "insert"]}
_MEMORY_COMMANDS: Final = {"type": "string", "enum": ["view", "create", "str_replace", "insert", "delete", "rename"]}
_EDITED: Final = {"file_text": _TEXT, "old_str": _TEXT, "new_str": _TEXT, "insert_line": {"type": "integer"}}
_EDITOR_TEXT: Final = (
    "Views, creates and edits text files: `view` (with `view_range`, two line numbers), `create` (`file_text`), "
    "`str_replace` (`old_str`, which must occur once, by `new_str`), `insert` (`{inserted}` after line `insert_line`)."
)
# Versions of the editor by this name take the inserted text in `new_str`, all others in `insert_text`.
_OLDER_EDITOR: Final = "str_replace_editor"
_MEMORY_TEXT: Final = (
    "Keeps notes in files below /memories: `view`, `create` (`file_text`), `str_replace` (`old_str`, `new_str`), "
    "`insert` (`insert_text` after line `insert_line`), `delete`, `rename` (`old_path` to `new_path`)."
)


def _editor(inserted: str) -> tuple[str, Mapping[str, Any]]:
    properties = {"command": _COMMANDS, "path": _TEXT, "view_range": _RANGE, **_EDITED, inserted: _TEXT}
    return _EDITOR_TEXT.format(inserted=inserted), _schema(["command", "path"], **properties)


_TOOLS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "bash": (
        "Runs a command in a bash session that stays open, and returns its output. `restart` starts a new session.",
        _schema([], command=_TEXT, restart={"type": "boolean"}),
    ),
    "text_editor": _editor("insert_text"),
    "memory": (
        _MEMORY_TEXT,
        _schema(
            ["command"],
            command=_MEMORY_COMMANDS,
            path=_TEXT,
            view_range=_RANGE,
            insert_text=_TEXT,
            old_path=_TEXT,
            new_path=_TEXT,
            **_EDITED,
        ),
    ),
}


def as_function(tool: ToolDefinition | ProviderTool) -> ToolDefinition | ProviderTool:
    """Return a tool that the client runs as a function; any other tool as it is."""
    if isinstance(tool, ToolDefinition) or tool.family is not Family.ANTHROPIC or tool.kind not in _TOOLS:
        return tool
    name = tool.block.get("name")
    description, schema = _editor("new_str") if name == _OLDER_EDITOR else _TOOLS[tool.kind]
    return ToolDefinition(name=name, description=description, schema=schema) if isinstance(name, str) else tool
