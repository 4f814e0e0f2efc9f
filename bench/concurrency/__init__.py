"""Benchmark of 200 concurrent calls to a service that fails a share of them, beside other retry libraries."""
