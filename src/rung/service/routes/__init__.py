"""HTTP routes of the service, one module per resource, and the event stream."""
