"""Upstreams of the gateway: their settings, the headers they get, and the filter of what they send back."""
