"""Notice trouble nobody raised: pure folds over a history. Import core only."""
