"""What goes wrong on a developer's machine."""


class LocalError(Exception):
    """The local environment cannot be run. The text says what stands in the way."""
