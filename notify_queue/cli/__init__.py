"""The commands that start a process: one module each."""
