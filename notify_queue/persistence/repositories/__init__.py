"""One repository per intention. Each states its locks; none calls another."""
