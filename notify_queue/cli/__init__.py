"""The commands that start a process, one module each, and what the scripts have in common."""
