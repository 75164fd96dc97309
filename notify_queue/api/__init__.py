"""The HTTP API: what a request may look like, and how it is answered."""
