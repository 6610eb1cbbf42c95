"""The messages of a cluster."""
