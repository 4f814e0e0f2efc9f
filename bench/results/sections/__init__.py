"""The sections of the page of results, each made from the figures of one or more benchmarks."""
