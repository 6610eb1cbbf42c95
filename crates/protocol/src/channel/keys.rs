//! Parameter keys.
#![allow(missing_docs)] // each constant is named after its value

pub const TAGS: &str = "tags";
pub const ENDPOINT: &str = "endpoint";
pub const INTERFACE: &str = "interface";
pub const CONTROL: &str = "control";
pub const CONTROL_MODE: &str = "control-mode";
pub const MTU: &str = "mtu";
pub const TERM_LENGTH: &str = "term-length";
pub const INITIAL_TERM_ID: &str = "init-term-id";
pub const TERM_ID: &str = "term-id";
pub const TERM_OFFSET: &str = "term-offset";
pub const SESSION_ID: &str = "session-id";
pub const TTL: &str = "ttl";
pub const RELIABLE: &str = "reliable";
pub const LINGER: &str = "linger";
pub const ALIAS: &str = "alias";
pub const CONGESTION_CONTROL: &str = "cc";
pub const FLOW_CONTROL: &str = "fc";
pub const GROUP_TAG: &str = "gtag";
pub const SPARSE: &str = "sparse";
pub const END_OF_STREAM: &str = "eos";
pub const TETHER: &str = "tether";
pub const GROUP: &str = "group";
pub const REJOIN: &str = "rejoin";
pub const SPIES_SIMULATE_CONNECTION: &str = "ssc";
pub const SOCKET_SNDBUF: &str = "so-sndbuf";
pub const SOCKET_RCVBUF: &str = "so-rcvbuf";
pub const RECEIVER_WINDOW: &str = "rcv-wnd";
pub const MEDIA_RECEIVE_TIMESTAMP_OFFSET: &str = "media-rcv-ts-offset";
pub const CHANNEL_RECEIVE_TIMESTAMP_OFFSET: &str = "channel-rcv-ts-offset";
pub const CHANNEL_SEND_TIMESTAMP_OFFSET: &str = "channel-snd-ts-offset";
pub const RESPONSE_ENDPOINT: &str = "response-endpoint";
pub const RESPONSE_CORRELATION_ID: &str = "response-correlation-id";
pub const NAK_DELAY: &str = "nak-delay";
pub const UNTETHERED_WINDOW_LIMIT_TIMEOUT: &str = "untethered-window-limit-timeout";
pub const UNTETHERED_LINGER_TIMEOUT: &str = "untethered-linger-timeout";
pub const UNTETHERED_RESTING_TIMEOUT: &str = "untethered-resting-timeout";
pub const MAX_RESEND: &str = "max-resend";
pub const STREAM_ID: &str = "stream-id";
pub const PUBLICATION_WINDOW: &str = "pub-wnd";
pub const TRANSPORT_SECURITY: &str = "ats";

/// Every key a builder sets, in the order it writes them.
pub const BUILDER_ORDER: [&str; 39] = [
    TAGS,
    ENDPOINT,
    INTERFACE,
    CONTROL,
    CONTROL_MODE,
    MTU,
    TERM_LENGTH,
    INITIAL_TERM_ID,
    TERM_ID,
    TERM_OFFSET,
    SESSION_ID,
    TTL,
    RELIABLE,
    LINGER,
    ALIAS,
    CONGESTION_CONTROL,
    FLOW_CONTROL,
    GROUP_TAG,
    SPARSE,
    END_OF_STREAM,
    TETHER,
    GROUP,
    REJOIN,
    SPIES_SIMULATE_CONNECTION,
    SOCKET_SNDBUF,
    SOCKET_RCVBUF,
    RECEIVER_WINDOW,
    MEDIA_RECEIVE_TIMESTAMP_OFFSET,
    CHANNEL_RECEIVE_TIMESTAMP_OFFSET,
    CHANNEL_SEND_TIMESTAMP_OFFSET,
    RESPONSE_ENDPOINT,
    RESPONSE_CORRELATION_ID,
    NAK_DELAY,
    UNTETHERED_WINDOW_LIMIT_TIMEOUT,
    UNTETHERED_LINGER_TIMEOUT,
    UNTETHERED_RESTING_TIMEOUT,
    MAX_RESEND,
    STREAM_ID,
    PUBLICATION_WINDOW,
];
