"""The table a crew shares: tasks and messages that workers of any kind read and write, on SQLite or PostgreSQL."""
