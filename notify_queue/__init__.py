"""Notify Queue: schedules notifications and delivers each one exactly once, on PostgreSQL alone."""

__version__ = "0.1.0"
