"""Translation between wire formats: one neutral conversation and answer, with a reader and a writer for each format."""
