"""Channels of alerts: Slack, Microsoft Teams, PagerDuty, a webhook, or a command."""
