//! Counter type ids. Ids below 1000 are registered: 0-99 driver and client, 100-199 archive, 200-299 cluster.
//! Applications use 1000 and above.

/// Counts of the driver as a whole; see [`super::system_counter`].
pub const SYSTEM_COUNTER: i32 = 0;
/// Publisher limit position.
pub const PUBLISHER_LIMIT: i32 = 1;
/// Sender position.
pub const SENDER_POSITION: i32 = 2;
/// Highest position received.
pub const RECEIVER_HIGH_WATER_MARK: i32 = 3;
/// Position of one subscriber in one stream.
pub const SUBSCRIBER_POSITION: i32 = 4;
/// Contiguous position received.
pub const RECEIVER_POSITION: i32 = 5;
/// Status of a send channel endpoint.
pub const SEND_CHANNEL_STATUS: i32 = 6;
/// Status of a receive channel endpoint.
pub const RECEIVE_CHANNEL_STATUS: i32 = 7;
/// Sender limit set by flow control.
pub const SENDER_LIMIT: i32 = 9;
/// Congestion control of one image.
pub const PER_IMAGE: i32 = 10;
/// When a client last said that it is alive, epoch ms.
pub const CLIENT_HEARTBEAT: i32 = 11;
/// Publisher position.
pub const PUBLISHER_POSITION: i32 = 12;
/// How often a sender was held back.
pub const SENDER_BACK_PRESSURE_EVENTS: i32 = 13;
/// A bound local address.
pub const LOCAL_SOCKET_ADDRESS: i32 = 14;
/// Neighbours of the name resolver.
pub const NAME_RESOLVER_NEIGHBORS: i32 = 15;
/// Cached entries of the name resolver.
pub const NAME_RESOLVER_CACHE_ENTRIES: i32 = 16;
/// Receivers counted by flow control.
pub const FLOW_CONTROL_RECEIVERS: i32 = 17;
/// Destinations of a multi-destination publication.
pub const MULTI_DESTINATION_COUNT: i32 = 18;
/// Requests for retransmission that a sender got.
pub const SENDER_NAKS_RECEIVED: i32 = 19;
/// Requests for retransmission that an image sent.
pub const RECEIVER_NAKS_SENT: i32 = 20;
/// A bootstrap neighbour of the name resolver.
pub const BOOTSTRAP_NEIGHBOR: i32 = 21;

/// Position up to which a stream is recorded.
pub const ARCHIVE_RECORDING_POSITION: i32 = 100;
/// Errors of an archive.
pub const ARCHIVE_ERROR_COUNT: i32 = 101;
/// Control sessions of an archive.
pub const ARCHIVE_CONTROL_SESSIONS: i32 = 102;
/// Longest duty cycle of an archive.
pub const ARCHIVE_MAX_CYCLE_TIME: i32 = 103;
/// Duty cycles of an archive that took too long.
pub const ARCHIVE_CYCLE_TIME_THRESHOLD_EXCEEDED: i32 = 104;
/// Longest write of a recorder.
pub const ARCHIVE_RECORDER_MAX_WRITE_TIME: i32 = 105;
/// Bytes a recorder wrote.
pub const ARCHIVE_RECORDER_TOTAL_WRITE_BYTES: i32 = 106;
/// Time a recorder spent writing.
pub const ARCHIVE_RECORDER_TOTAL_WRITE_TIME: i32 = 107;
/// Longest read of a replayer.
pub const ARCHIVE_REPLAYER_MAX_READ_TIME: i32 = 108;
/// Bytes a replayer read.
pub const ARCHIVE_REPLAYER_TOTAL_READ_BYTES: i32 = 109;
/// Time a replayer spent reading.
pub const ARCHIVE_REPLAYER_TOTAL_READ_TIME: i32 = 110;
/// Recordings being made.
pub const ARCHIVE_RECORDING_SESSION_COUNT: i32 = 111;
/// Replays being served.
pub const ARCHIVE_REPLAY_SESSION_COUNT: i32 = 112;
/// One control session of an archive.
pub const ARCHIVE_CONTROL_SESSION: i32 = 113;

/// State of a consensus module.
pub const CLUSTER_CONSENSUS_MODULE_STATE: i32 = 200;
/// Role of a cluster node.
pub const CLUSTER_NODE_ROLE: i32 = 201;
/// Switch by which operators control a node.
pub const CLUSTER_CONTROL_TOGGLE: i32 = 202;
/// Position up to which the log is committed.
pub const CLUSTER_COMMIT_POSITION: i32 = 203;
/// What a node recovers from.
pub const CLUSTER_RECOVERY_STATE: i32 = 204;
/// Snapshots taken.
pub const CLUSTER_SNAPSHOT_COUNTER: i32 = 205;
/// State of an election.
pub const CLUSTER_ELECTION_STATE: i32 = 207;
/// State of a backup node.
pub const CLUSTER_BACKUP_STATE: i32 = 208;
/// Live log position of a backup node.
pub const CLUSTER_BACKUP_LIVE_LOG_POSITION: i32 = 209;
/// When a backup node asks again.
pub const CLUSTER_BACKUP_QUERY_DEADLINE: i32 = 210;
/// Errors of a backup node.
pub const CLUSTER_BACKUP_ERROR_COUNT: i32 = 211;
/// Errors of a consensus module.
pub const CLUSTER_CONSENSUS_MODULE_ERROR_COUNT: i32 = 212;
/// Clients that fell silent.
pub const CLUSTER_CLIENT_TIMEOUT_COUNT: i32 = 213;
/// Requests that made no sense.
pub const CLUSTER_INVALID_REQUEST_COUNT: i32 = 214;
/// Errors of a clustered service.
pub const CLUSTER_CLUSTERED_SERVICE_ERROR_COUNT: i32 = 215;
/// Longest duty cycle of a consensus module.
pub const CLUSTER_MAX_CYCLE_TIME: i32 = 216;
/// Duty cycles of a consensus module that took too long.
pub const CLUSTER_CYCLE_TIME_THRESHOLD_EXCEEDED: i32 = 217;
/// Longest duty cycle of a service container.
pub const CLUSTER_SERVICE_MAX_CYCLE_TIME: i32 = 218;
/// Duty cycles of a service container that took too long.
pub const CLUSTER_SERVICE_CYCLE_TIME_THRESHOLD_EXCEEDED: i32 = 219;
/// Switch by which operators control one node.
pub const CLUSTER_NODE_CONTROL_TOGGLE: i32 = 233;
/// Longest snapshot of a whole node.
pub const CLUSTER_TOTAL_MAX_SNAPSHOT_DURATION: i32 = 234;
/// Snapshots of a whole node that took too long.
pub const CLUSTER_TOTAL_SNAPSHOT_DURATION_THRESHOLD_EXCEEDED: i32 = 235;
/// Longest snapshot of a service.
pub const CLUSTER_SERVICE_MAX_SNAPSHOT_DURATION: i32 = 236;
/// Snapshots of a service that took too long.
pub const CLUSTER_SERVICE_SNAPSHOT_DURATION_THRESHOLD_EXCEEDED: i32 = 237;
/// Elections held.
pub const CLUSTER_ELECTION_COUNT: i32 = 238;
/// Id of the leadership term.
pub const CLUSTER_LEADERSHIP_TERM_ID: i32 = 239;
/// Snapshots a backup node fetched.
pub const CLUSTER_BACKUP_SNAPSHOT_RETRIEVE_COUNT: i32 = 240;
/// One session of a cluster client.
pub const CLUSTER_SESSION: i32 = 241;
