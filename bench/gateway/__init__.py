"""Throughput, latency and recovery of the gateway, beside its peers."""
