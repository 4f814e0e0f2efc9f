"""The survival table: real clients and faults with no gateway, behind Rung and behind LiteLLM's proxy: `make survival`."""
