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
