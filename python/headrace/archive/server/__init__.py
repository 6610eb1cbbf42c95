"""The archive itself: control sessions, recordings, replays, and the settings of all."""
