"""Built-in classification rules."""
