"""The development runner: a database server, the schema, the API and workers on one machine.

It starts the product as processes and knows nothing of its inside; nothing here runs in
production, where ``DATABASE_URL`` names a real server.
"""
