"""Processes: greenlets, loops, signals and the worker's HTTP port."""
