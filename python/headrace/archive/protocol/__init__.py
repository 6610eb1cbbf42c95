"""The archive's protocol: messages and their schema, descriptors, codes, and the keys of its counters."""
