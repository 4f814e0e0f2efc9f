"""The page of results: runs benchmarks, keeps their figures in docs/results, and writes docs/results.md from them."""
