"""What an operator sees of the system from outside."""
