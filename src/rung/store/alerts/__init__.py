"""Alerts in the journal's database: figures, states, history, and notifications that wait to be sent."""
