"""Telling the caller: events go from the outbox to the webhook's receiver (docs/webhooks.md)."""
