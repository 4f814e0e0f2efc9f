"""A crew's shared tables: tasks and messages that any worker can read and write, on SQLite or PostgreSQL."""
