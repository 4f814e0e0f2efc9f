"""Guide texts: the meaning of each kind of failure and the remedies for it."""
