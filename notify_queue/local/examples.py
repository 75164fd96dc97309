"""What the script that adds the example jobs has said, for the person at the terminal."""

import json

from notify_queue.local.errors import LocalError


def describe_seeding(line: bytes) -> str:
    """Turn the script's line into a sentence.

    Raises:
        LocalError: it is no such line.
    """
    try:
        said = json.loads(line)
        added, existing = int(said["seeded"]), int(said["existing"])
    except (ValueError, KeyError, TypeError) as error:
        raise LocalError("Adding the example jobs ended without a word about it.") from error
    if not added:
        return f"Examples: {existing} jobs, added by an earlier run"
    earlier = f", {existing} were there" if existing else ""
    return f"Examples: {added} jobs added{earlier}"
