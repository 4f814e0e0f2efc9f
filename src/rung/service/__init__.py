"""The service: the journal over HTTP, with a dashboard, and acts for whoever may act."""
