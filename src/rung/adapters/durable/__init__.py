"""Durable engines that people already run: Temporal, DBOS, Restate, Inngest, Hatchet."""
