"""The consensus module of a cluster's member."""
