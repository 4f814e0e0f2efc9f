"""Commands about kinds, ladders, policies and JSON Schemas."""
