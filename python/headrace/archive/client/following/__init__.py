"""Following a recording from history to live and back: see ``docs/internals/archive.md``."""
