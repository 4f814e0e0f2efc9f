"""Recovery policies played on recorded outcomes of others: an attempt is a draw from recorded trials."""
