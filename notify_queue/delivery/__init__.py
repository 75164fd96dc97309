"""The provider seam: what a provider must be, the deadline around it, and the mock."""
