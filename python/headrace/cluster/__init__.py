"""Replicated services over a totally ordered log. Here is what their members keep on disk and send each other."""
