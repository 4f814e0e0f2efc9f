"""What `learn` saves on recorded outcomes: the same ladder with and without it, over one journal each."""
