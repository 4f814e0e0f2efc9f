"""Makes decisions happen: ports, one step shared by a sync and an async loop, and the public API."""
