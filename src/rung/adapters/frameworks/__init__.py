"""Recovery adapters for SDK clients and agent frameworks."""
