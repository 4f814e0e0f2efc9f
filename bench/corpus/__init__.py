"""How many real errors are classified right."""
