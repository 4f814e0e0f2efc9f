"""Accuracy and speed of the classifier on labelled errors."""
