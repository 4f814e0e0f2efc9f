"""SQL of the crew's protocol in instructions: misspelled tables, columns, states and keywords."""

from __future__ import annotations

import re
from typing import Final

from rung.core.crew.contract import MessageType, TaskState
from rung.core.text.near_names import near_name

TASK_COLUMNS: Final = (
    "task_id", "state", "instruction_path", "session_id", "worked_by", "started_at", "completed_at", "report_path",
    "retry_count", "last_heartbeat", "last_error", "generation", "open_for_claim", "error_tries", "approved", "checkpoint",
    "review_cycles", "reviews_approved", "checkpoints", "stale_after", "title", "depends_on", "priority", "command", "workdir",
    "writes", "progress", "progress_at", "redispatches", "warnings", "history", "plan_mark", "phase", "outcome", "note",
    "moved_at",
)  # fmt: skip
MESSAGE_COLUMNS: Final = ("id", "task_id", "from_session", "message", "message_type", "timestamp")
TABLES: Final = {"orchestration_tasks": TASK_COLUMNS, "orchestration_messages": MESSAGE_COLUMNS}
# Names of earlier protocols. They are not near by their letters.
_FORMER_NAMES: Final = {
    "coordination_status": "orchestration_tasks",
    "coordination_tasks": "orchestration_tasks",
    "coordination_messages": "orchestration_messages",
}
_KEYWORDS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")
# A statement begins at a keyword, or at a word near one, and ends at a semicolon, a fence or an empty line.
_STATEMENT: Final = re.compile(r"^[ \t>]*(?P<verb>[A-Z]{5,7})\s(?:'(?:[^']|'')*'|[^';`\n]|\n(?!\s*\n))*", re.MULTILINE)
_SHAPE: Final = re.compile(
    r"[\s>]*(?:BEGIN\s+)?(?:UPDATE\s+\w+\s+SET\b|INSERT\s+INTO\b|DELETE\s+FROM\b|SELECT\b.*?\bFROM\b)", re.DOTALL
)
_TABLE: Final = re.compile(r"\b(FROM|INTO|UPDATE|JOIN)(\s+)([A-Za-z_]\w*)", re.IGNORECASE)
_PIECE: Final = re.compile(r"'(?:[^']|'')*'|[A-Za-z_]\w*")
_STATE_CONTEXT: Final = re.compile(r"\bstate\s*(?:=|<>|!=|(?:NOT\s+)?IN\s*\((?:\s*'\w*'\s*,)*)\s*\Z", re.IGNORECASE)
_MIN_NAME: Final = 4  # letters of a column's name that is compared


def mend_sql(text: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the text with misspelled names corrected, what was corrected, and states that do not exist.

    Only statements on the tables of the protocol are read. SQL of the project itself stays as it is.
    """
    mended: list[str] = []
    unknown: list[str] = []

    def replace(match: re.Match[str]) -> str:
        verb = match["verb"]
        keyword = verb if verb in _KEYWORDS or verb == "BEGIN" else near_name(verb, _KEYWORDS)
        statement = match[0].replace(verb, keyword, 1)
        if not keyword or not _SHAPE.match(statement):
            return match[0]
        statement = _mend_tables(statement, mended)
        columns = {column for table, names in TABLES.items() if table in statement for column in names}
        if not columns:
            return match[0]
        if keyword != verb:
            mended.append(f"SQL {verb} → {keyword}")
        return _mend_names(statement, columns, mended, unknown)

    result = _STATEMENT.sub(replace, text)
    return result, tuple(dict.fromkeys(mended)), tuple(dict.fromkeys(unknown))


def _mend_tables(statement: str, mended: list[str]) -> str:
    def replace(match: re.Match[str]) -> str:
        keyword, space, name = match.groups()
        instead = "" if name in TABLES else _FORMER_NAMES.get(name) or near_name(name, TABLES)
        if not instead:
            return match[0]
        mended.append(f"table {name} → {instead}")
        return f"{keyword}{space}{instead}"

    return _TABLE.sub(replace, statement)


def _mend_names(statement: str, columns: set[str], mended: list[str], unknown: list[str]) -> str:
    """Correct the columns, states and message types of one statement."""

    def replace(match: re.Match[str]) -> str:
        piece = match[0]
        if piece.startswith("'"):
            return _mend_literal(statement[: match.start()], piece, mended, unknown)
        is_call = statement[match.end() :].lstrip(" ").startswith("(") and piece.lower() not in TABLES
        if piece in columns or piece.upper() in _WORDS or is_call or len(piece) < _MIN_NAME:
            return piece
        instead = near_name(piece, columns)
        if not instead or instead.lower() == piece.lower():
            return piece
        mended.append(f"column {piece} → {instead}")
        return instead

    return _PIECE.sub(replace, statement)


def _mend_literal(before: str, piece: str, mended: list[str], unknown: list[str]) -> str:
    value = piece[1:-1]
    if not re.fullmatch(r"[a-z_]{3,30}", value):
        return piece
    is_state = _STATE_CONTEXT.search(before) is not None
    if is_state and value not in set(TaskState):
        instead = near_name(value, TaskState)
        if not instead:
            unknown.append(value)
            return piece
        mended.append(f"state {value} → {instead}")
        return f"'{instead}'"
    if "message_type" in before and value not in {*MessageType, *TaskState}:
        instead = near_name(value, MessageType)
        if instead:
            mended.append(f"message type {value} → {instead}")
            return f"'{instead}'"
    return piece


_WORDS: Final = frozenset(
    [
        "SELECT",
        "INSERT",
        "UPDATE",
        "DELETE",
        "FROM",
        "INTO",
        "VALUES",
        "SET",
        "WHERE",
        "AND",
        "OR",
        "NOT",
        "IN",
        "IS",
        "NULL",
        "LIKE",
        "ORDER",
        "BY",
        "DESC",
        "ASC",
        "LIMIT",
        "AS",
        "JOIN",
        "LEFT",
        "ON",
        "USING",
        "GROUP",
        "HAVING",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "BETWEEN",
        "EXISTS",
        "DISTINCT",
        "COUNT",
        "MAX",
        "MIN",
        "RETURNING",
        "CONFLICT",
        "DO",
        "NOTHING",
        "BEGIN",
        "COMMIT",
        "TRUE",
        "FALSE",
        "CURRENT_TIMESTAMP",
        "UNION",
        "ALL",
    ]
)
