"""The way out: what a provider must be, the deadlines around a call, and the mock."""
