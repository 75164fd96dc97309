"""The life of a job in a worker, in order: claim, deliver, complete; ``pipeline`` joins them."""
