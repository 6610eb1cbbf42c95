"""The archive on the wire: messages and their schema, descriptors, codes, and the keys of its counters."""
