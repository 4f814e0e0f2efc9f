"""Replay of recorded provider incidents against clients, LiteLLM's policy and the gateway, in virtual time."""
