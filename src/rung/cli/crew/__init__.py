"""Commands of a crew: the conductor's side, the worker's side, and the operator's."""
