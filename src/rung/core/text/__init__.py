"""Text: events and measurements as people read them, and JSON objects in prose."""
