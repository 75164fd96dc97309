"""What mends the queue: jobs whose worker has gone are given to another."""
