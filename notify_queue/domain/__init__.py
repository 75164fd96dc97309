"""The rules of the queue, as plain values and functions.

Nothing here does I/O, reads a clock, draws a random number or writes a log: whatever of these a
rule needs comes in as an argument, so every rule can be read and tested alone.
"""
