"""The routes, one file for each resource."""
