"""Accuracy and speed of the loop detectors."""
