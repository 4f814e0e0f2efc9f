"""Admission of requests: routes, paths of keys, and bodies."""
