"""What the system says about itself: log lines of known events, with known fields and no others."""
