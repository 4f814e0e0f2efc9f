"""Real clients with and without the gateway, against a provider of their own: `make clients`."""
