"""Conversations: compaction of long histories, and repair of broken ones."""
