"""The archive's client: the session with an archive, its requests, and replays."""
