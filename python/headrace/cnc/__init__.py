"""Readers of what a driver shows in its CnC file: counters and the error log. Its public names: `headrace.tools`."""
