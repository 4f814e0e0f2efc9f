"""Detectors: find problems that raised no error (loops, stalls, bad output). Pure folds over history; import core only."""
