"""HTTP/1.1 layer of the gateway: upstream connections, their pool and port, and the server protocol."""
