"""Domain model: failures, ladders, requests, events, incidents, outcomes and exceptions."""
