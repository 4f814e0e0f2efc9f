"""The only place where parts are chosen and settings are read."""
