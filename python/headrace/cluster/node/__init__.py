"""A whole member: settings, turns, and the parts in one process."""
