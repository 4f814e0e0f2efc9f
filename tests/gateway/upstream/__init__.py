"""Tests of the providers of upstreams."""
