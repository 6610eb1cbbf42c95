"""Agents: what an archive and the parts of a cluster's member share."""
