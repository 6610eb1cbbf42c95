"""The backup of a cluster: an agent outside of it that keeps a copy of its log and snapshots."""
