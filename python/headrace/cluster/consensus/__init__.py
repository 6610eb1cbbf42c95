"""Who leads a cluster, and what is committed: decisions alone, for any number of members. Cluster specification 5.

:class:`~headrace.cluster.consensus.core.Consensus` takes messages, time and news of the log, and returns actions.
Nothing in this package has a clock, socket, file or thread, or waits.
"""
