"""Following a recording from history to live and back: see ``docs/design/0038-follow.md``."""
