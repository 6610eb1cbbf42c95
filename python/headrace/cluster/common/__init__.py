"""What the parts of a cluster share."""
