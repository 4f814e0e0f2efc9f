"""Request and response models of the HTTP API, one module per router. The OpenAPI document is generated from them."""
