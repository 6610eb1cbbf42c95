"""What a member of a cluster keeps of the log: where its terms and snapshots are recorded."""
