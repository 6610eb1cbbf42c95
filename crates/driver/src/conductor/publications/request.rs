//! A client's request for a publication, and the log that it gets.

use std::path::Path;
use std::sync::Arc;

use headrace_buffers::counters::type_ids;
use headrace_buffers::log::{LogBuffers, LogSpec, LogType, StartPosition};
use headrace_protocol::channel::{ChannelDefaults, ChannelUri, InitialPosition, PublicationParams};

use super::stream::{StreamCounters, StreamSpec};
use crate::conductor::counters::StreamKey;
use crate::conductor::log_files;
use crate::conductor::subscriptions::links::UntetheredTimeouts;
use crate::config::DriverConfig;
use crate::errors::CommandError;
use crate::resource_tasks::CreateLog;

/// Entity tag of a publication without one.
const NO_TAG: i64 = -1;

/// An add, taken apart and checked.
pub(crate) struct PublicationRequest {
    pub(crate) stream_id: i32,
    pub(crate) is_exclusive: bool,
    pub(crate) uri: ChannelUri,
    pub(crate) channel: Arc<str>,
    pub(crate) params: PublicationParams,
}

impl PublicationRequest {
    pub(crate) fn new(
        uri: ChannelUri,
        channel: &str,
        stream_id: i32,
        is_exclusive: bool,
        defaults: &ChannelDefaults,
    ) -> Result<Self, CommandError> {
        let params = PublicationParams::from_uri(&uri, defaults)?;
        params.check_stream_id(stream_id)?;
        Ok(Self {
            stream_id,
            is_exclusive,
            uri,
            channel: channel.into(),
            params,
        })
    }

    /// Where the stream starts: as asked for, or at the first byte of a random term.
    pub(crate) fn start(&self, random: &mut fastrand::Rng) -> InitialPosition {
        self.params.initial_position.unwrap_or_else(|| {
            let initial_term_id = random.i32(..);
            InitialPosition {
                initial_term_id,
                term_id: initial_term_id,
                term_offset: 0,
            }
        })
    }
}

/// A request with all that had to be chosen.
pub(crate) struct PublicationPlan {
    pub(crate) request: PublicationRequest,
    registration_id: i64,
    session_id: i32,
    start: InitialPosition,
    log_file_name: String,
}

impl PublicationPlan {
    pub(crate) fn new(
        request: PublicationRequest,
        registration_id: i64,
        session_id: i32,
        start: InitialPosition,
        directory: &Path,
    ) -> Result<Self, CommandError> {
        Ok(Self {
            request,
            registration_id,
            session_id,
            start,
            log_file_name: log_files::publication_log(directory, registration_id)?,
        })
    }

    /// The log to create, but for what only one kind of publication has.
    pub(crate) fn log_spec(&self, config: &DriverConfig) -> LogSpec {
        let params = &self.request.params;
        LogSpec {
            log_type: if self.request.is_exclusive {
                LogType::ExclusivePublication
            } else {
                LogType::ConcurrentPublication
            },
            term_length: params.term_length,
            page_size: config.file_page_size_bytes,
            sparse: params.is_sparse,
            mtu: params.mtu_length,
            session_id: self.session_id,
            stream_id: self.request.stream_id,
            initial_term_id: self.start.initial_term_id,
            start: self.explicit_start(),
            correlation_id: self.registration_id,
            publication_window_length: params.publication_window_length as i32,
            max_resend: params.max_resend as i32,
            entity_tag: params.tags.entity.unwrap_or(NO_TAG),
            response_correlation_id: params.response_correlation.raw(),
            linger_timeout_ns: params.linger_timeout_ns,
            untethered_window_limit_timeout_ns: params.untethered_window_limit_timeout_ns,
            untethered_linger_timeout_ns: params.untethered_linger_timeout_ns,
            untethered_resting_timeout_ns: params.untethered_resting_timeout_ns,
            is_response: params.is_response,
            signal_eos: params.signals_end_of_stream,
            spies_simulate_connection: params.spies_simulate_connection,
            ..LogSpec::default()
        }
    }

    /// The start in a log's metadata; none when the stream starts at its first byte.
    fn explicit_start(&self) -> Option<StartPosition> {
        self.request.params.initial_position.map(|_| StartPosition {
            term_id: self.start.term_id,
            term_offset: self.start.term_offset as usize,
        })
    }

    /// The task of the resource agent that makes the log, as `spec` says.
    pub(crate) fn create_log(&self, spec: LogSpec) -> CreateLog {
        CreateLog {
            correlation_id: self.registration_id,
            path: self.log_file_name.clone().into(),
            spec,
        }
    }

    /// What the counters of the stream say about it.
    pub(crate) fn key(&self, owner_id: i64) -> StreamKey<'_> {
        StreamKey {
            registration_id: self.registration_id,
            owner_id,
            session_id: self.session_id,
            stream_id: self.request.stream_id,
            channel: &self.request.channel,
        }
    }

    /// The position of its first byte.
    pub(crate) fn start_position(&self) -> i64 {
        self.start.position(self.request.params.term_length)
    }

    pub(crate) fn session_id(&self) -> i32 {
        self.session_id
    }

    /// Type, name and first value of the counters that every publication has.
    pub(crate) fn counter_rows(&self) -> [(i32, &'static str, i64); 2] {
        let position = self.start_position();
        let position_name = if self.request.is_exclusive {
            "pub-pos (exclusive)"
        } else {
            "pub-pos (concurrent)"
        };
        [
            (type_ids::PUBLISHER_POSITION, position_name, position),
            (type_ids::PUBLISHER_LIMIT, "pub-lmt", position),
        ]
    }

    /// The stream in its log. Its counters begin with those of [`Self::counter_rows`].
    pub(crate) fn into_stream(
        self,
        log: LogBuffers,
        counters: StreamCounters,
        channel_status_counter_id: i32,
    ) -> StreamSpec {
        let params = &self.request.params;
        StreamSpec {
            registration_id: self.registration_id,
            session_id: self.session_id,
            stream_id: self.request.stream_id,
            channel: Arc::clone(&self.request.channel),
            is_exclusive: self.request.is_exclusive,
            tags: params.tags,
            response_correlation: params.response_correlation,
            start: self.start,
            spies_simulate_connection: params.spies_simulate_connection,
            log,
            log_file_name: self.log_file_name,
            window_length: params.publication_window_length as i64,
            untethered: UntetheredTimeouts::from(params),
            channel_status_counter_id,
            counters,
        }
    }
}
