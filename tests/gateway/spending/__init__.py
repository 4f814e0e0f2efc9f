"""Tests of the gateway's spending: prices, settlement, estimates."""
