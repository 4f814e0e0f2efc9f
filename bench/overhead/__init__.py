"""Cost of a guarded call, beside its peers."""
