"""The files of a cluster's member: mark files, node state, and which recordings hold terms and snapshots."""
