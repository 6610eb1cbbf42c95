"""Services of a cluster: what a user writes, and the container that runs it."""
