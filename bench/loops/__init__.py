"""How well loops are told from work."""
