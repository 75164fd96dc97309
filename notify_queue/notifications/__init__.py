"""What a client or an operator asks for: schedule, look, cancel, redrive."""
