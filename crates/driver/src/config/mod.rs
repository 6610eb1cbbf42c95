//! The driver's settings: one typed field each, one row in the table that reads them.
//!
//! A setting may be given by its property name (`aeron.dir`) or its environment name (`AERON_DIR`). Settings of
//! features this release does not have are refused when they ask for anything but the default, so that no
//! user believes that a setting works when it does not.

mod error;
mod fetch;
mod settings;
mod sources;
mod table;
mod values;

use std::path::PathBuf;

use headrace_protocol::channel::{ChannelDefaults, GroupConsideration};
use headrace_sys::idle::IdleStrategy;

pub use error::ConfigError;
pub use sources::Sources;
pub use values::PortRange;

/// How the agents are spread over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadingMode {
    /// Conductor, sender, receiver and resource agent have a thread each.
    Dedicated,
    /// Sender and receiver share one thread.
    SharedNetwork,
    /// One thread runs everything.
    Shared,
    /// The embedding program runs everything by calling the invoker.
    Invoker,
}

impl ThreadingMode {
    /// The name used in settings and counter labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dedicated => "DEDICATED",
            Self::SharedNetwork => "SHARED_NETWORK",
            Self::Shared => "SHARED",
            Self::Invoker => "INVOKER",
        }
    }
}

/// Which names threads carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadNaming {
    /// `conductor`, `sender`, `receiver`.
    Classic,
    /// `aeron-md-cnd`, `aeron-md-snd`, `aeron-md-rcv`.
    New,
}

/// Who may stop the driver with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminationValidator {
    /// Every client.
    Allow,
    /// No client.
    Deny,
}

/// An idle strategy by name, with its optional arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleSetting {
    /// `backoff`, `spin`, `yield`, `sleep-ns`, `noop` or a synonym.
    pub name: String,
    /// Arguments in the strategy's own syntax.
    pub init_args: Option<String>,
}

impl IdleSetting {
    fn new(name: &str, init_args: Option<&str>) -> Self {
        Self {
            name: name.to_owned(),
            init_args: init_args.map(str::to_owned),
        }
    }

    fn blocking() -> Self {
        Self::new("blocking", None)
    }

    /// The strategy. Fails with the rule that was broken.
    pub fn strategy(&self) -> Result<IdleStrategy, String> {
        IdleStrategy::parse(&self.name, self.init_args.as_deref()).map_err(|error| error.to_string())
    }
}

/// Every setting of the driver. Lengths are bytes; the unit of a duration is in its name.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // Each field is the setting of the same name in the table of settings.
pub struct DriverConfig {
    pub directory: PathBuf,
    pub dir_delete_on_start: bool,
    pub dir_delete_on_shutdown: bool,
    pub dir_warn_if_exists: bool,
    pub driver_timeout_ms: i64,
    pub termination_validator: TerminationValidator,
    pub print_configuration: bool,
    pub perform_storage_checks: bool,
    pub low_storage_warning_threshold: usize,
    pub file_page_size: usize,
    pub resource_free_limit: usize,

    pub conductor_buffer_length: usize,
    pub clients_buffer_length: usize,
    pub counters_buffer_length: usize,
    pub error_buffer_length: usize,
    pub loss_report_buffer_length: usize,
    pub counter_free_to_reuse_timeout_ns: i64,

    pub term_buffer_length: usize,
    pub ipc_term_buffer_length: usize,
    pub term_buffer_sparse_file: bool,
    pub mtu_length: usize,
    pub ipc_mtu_length: usize,
    pub publication_term_window_length: usize,
    pub ipc_publication_term_window_length: usize,
    pub initial_window_length: usize,

    pub socket_receive_buffer_length: usize,
    pub socket_send_buffer_length: usize,
    pub sender_wildcard_port_range: PortRange,
    pub receiver_wildcard_port_range: PortRange,
    pub receiver_io_vector_capacity: usize,
    pub send_to_status_poll_ratio: usize,

    pub timer_interval_ns: i64,
    pub client_liveness_timeout_ns: i64,
    pub image_liveness_timeout_ns: i64,
    pub publication_unblock_timeout_ns: i64,
    pub publication_connection_timeout_ns: i64,
    pub publication_linger_timeout_ns: i64,
    pub untethered_window_limit_timeout_ns: i64,
    pub untethered_linger_timeout_ns: Option<i64>,
    pub untethered_resting_timeout_ns: i64,
    pub status_message_timeout_ns: i64,

    pub nak_unicast_delay_ns: i64,
    pub nak_unicast_retry_delay_ratio: i64,
    pub nak_multicast_group_size: usize,
    pub nak_multicast_max_backoff_ns: i64,
    pub retransmit_unicast_delay_ns: i64,
    pub retransmit_unicast_linger_ns: i64,
    pub max_resend: usize,

    pub reliable_stream: bool,
    pub tether_subscriptions: bool,
    pub rejoin_stream: bool,
    pub spies_simulate_connection: bool,
    pub receiver_group_consideration: GroupConsideration,
    pub reserved_session_id_low: i32,
    pub reserved_session_id_high: i32,
    pub stream_session_limit: usize,
    /// What publishers elsewhere can make the driver hold.
    pub image_limits: ImageLimits,

    pub unicast_flow_control_rrwm: usize,
    pub receiver_group_tag: Option<i64>,

    pub reresolution_check_interval_ns: i64,
    pub name_resolver_threshold_ns: i64,

    pub threading_mode: ThreadingMode,
    pub thread_naming: ThreadNaming,
    pub conductor_idle: IdleSetting,
    pub sender_idle: IdleSetting,
    pub receiver_idle: IdleSetting,
    pub shared_network_idle: IdleSetting,
    pub shared_idle: IdleSetting,
    pub resource_agent_idle: IdleSetting,
    pub conductor_cpu_affinity: i32,
    pub sender_cpu_affinity: i32,
    pub receiver_cpu_affinity: i32,
    pub resource_agent_cpu_affinity: i32,
    pub conductor_cycle_threshold_ns: i64,
    pub sender_cycle_threshold_ns: i64,
    pub receiver_cycle_threshold_ns: i64,

    /// One sentence for each name of the environment or of a file that looks like a misspelt setting. The driver puts
    /// them into its error log.
    pub doubts: Vec<String>,
}

const MICROSECOND: i64 = 1_000;
const MILLISECOND: i64 = 1_000 * MICROSECOND;
const SECOND: i64 = 1_000 * MILLISECOND;
const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Bytes after the power-of-two capacity of the to-driver ring.
const RING_TRAILER_LENGTH: usize = 768;
/// Bytes after the power-of-two capacity of the to-clients broadcast.
const BROADCAST_TRAILER_LENGTH: usize = 128;

/// Limits on the images of all streams together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageLimits {
    /// Most images at once.
    pub count: usize,
    /// Most bytes of their logs.
    pub bytes: usize,
}

impl Default for ImageLimits {
    fn default() -> Self {
        Self {
            count: 1024,
            bytes: 4096 * MIB,
        }
    }
}

impl Default for DriverConfig {
    fn default() -> Self {
        Self {
            directory: sources::default_directory(),
            dir_delete_on_start: false,
            dir_delete_on_shutdown: false,
            dir_warn_if_exists: false,
            driver_timeout_ms: 10_000,
            termination_validator: TerminationValidator::Deny,
            print_configuration: false,
            perform_storage_checks: true,
            low_storage_warning_threshold: 160 * MIB,
            file_page_size: 4 * KIB,
            resource_free_limit: 1,

            conductor_buffer_length: MIB + RING_TRAILER_LENGTH,
            clients_buffer_length: MIB + BROADCAST_TRAILER_LENGTH,
            counters_buffer_length: 8 * MIB,
            error_buffer_length: 4 * MIB,
            loss_report_buffer_length: MIB,
            counter_free_to_reuse_timeout_ns: SECOND,

            term_buffer_length: 16 * MIB,
            ipc_term_buffer_length: 64 * MIB,
            term_buffer_sparse_file: true,
            mtu_length: 1408,
            ipc_mtu_length: 1408,
            publication_term_window_length: 0,
            ipc_publication_term_window_length: 0,
            initial_window_length: 128 * KIB,

            socket_receive_buffer_length: 128 * KIB,
            socket_send_buffer_length: 0,
            sender_wildcard_port_range: PortRange::default(),
            receiver_wildcard_port_range: PortRange::default(),
            receiver_io_vector_capacity: 4,
            send_to_status_poll_ratio: 6,

            timer_interval_ns: SECOND,
            client_liveness_timeout_ns: 10 * SECOND,
            image_liveness_timeout_ns: 10 * SECOND,
            publication_unblock_timeout_ns: 15 * SECOND,
            publication_connection_timeout_ns: 5 * SECOND,
            publication_linger_timeout_ns: 5 * SECOND,
            untethered_window_limit_timeout_ns: 5 * SECOND,
            untethered_linger_timeout_ns: None,
            untethered_resting_timeout_ns: 10 * SECOND,
            status_message_timeout_ns: 200 * MILLISECOND,

            nak_unicast_delay_ns: MICROSECOND,
            nak_unicast_retry_delay_ratio: 100,
            nak_multicast_group_size: 10,
            nak_multicast_max_backoff_ns: 10 * MILLISECOND,
            retransmit_unicast_delay_ns: 0,
            retransmit_unicast_linger_ns: 10 * MILLISECOND,
            max_resend: 16,
            reliable_stream: true,
            tether_subscriptions: true,
            rejoin_stream: true,
            spies_simulate_connection: false,
            receiver_group_consideration: GroupConsideration::Infer,
            reserved_session_id_low: -1,
            reserved_session_id_high: 1000,
            stream_session_limit: i32::MAX as usize,
            image_limits: ImageLimits::default(),
            unicast_flow_control_rrwm: 16,
            receiver_group_tag: None,

            reresolution_check_interval_ns: SECOND,
            name_resolver_threshold_ns: 5 * SECOND,

            threading_mode: ThreadingMode::Dedicated,
            thread_naming: ThreadNaming::Classic,
            conductor_idle: IdleSetting::blocking(),
            sender_idle: IdleSetting::blocking(),
            receiver_idle: IdleSetting::blocking(),
            shared_network_idle: IdleSetting::blocking(),
            shared_idle: IdleSetting::blocking(),
            resource_agent_idle: IdleSetting::blocking(),
            conductor_cpu_affinity: -1,
            sender_cpu_affinity: -1,
            receiver_cpu_affinity: -1,
            resource_agent_cpu_affinity: -1,
            conductor_cycle_threshold_ns: 100 * MILLISECOND,
            sender_cycle_threshold_ns: 100 * MILLISECOND,
            receiver_cycle_threshold_ns: 100 * MILLISECOND,
            doubts: Vec::new(),
        }
    }
}

impl DriverConfig {
    /// The defaults, overridden by the process's environment, then by `properties` in order.
    pub fn from_env_and_properties<'a>(
        properties: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ConfigError> {
        let mut sources = Sources::from_environment(std::env::vars());
        for (name, value) in properties {
            sources.put(name, value);
        }
        sources.into_config()
    }

    /// Changes one setting, by its property or its environment name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        match table::find(name) {
            Some(setting) => setting.apply(self, value),
            None => Err(ConfigError::unknown(name, value)),
        }
    }

    /// Every setting that has an effect, with its value, in the order of the table.
    pub fn entries(&self) -> Vec<(&'static str, String)> {
        table::shown(self)
    }

    /// What the settings mean for channels that do not say otherwise.
    pub fn channel_defaults(&self) -> ChannelDefaults {
        ChannelDefaults {
            mtu_length: self.mtu_length,
            ipc_mtu_length: self.ipc_mtu_length,
            term_length: self.term_buffer_length,
            ipc_term_length: self.ipc_term_buffer_length,
            publication_window_length: self.publication_term_window_length,
            ipc_publication_window_length: self.ipc_publication_term_window_length,
            linger_timeout_ns: self.publication_linger_timeout_ns,
            is_sparse: self.term_buffer_sparse_file,
            max_resend: self.max_resend,
            untethered_window_limit_timeout_ns: self.untethered_window_limit_timeout_ns,
            untethered_linger_timeout_ns: self.untethered_linger_timeout_ns,
            untethered_resting_timeout_ns: self.untethered_resting_timeout_ns,
            is_reliable: self.reliable_stream,
            is_tethered: self.tether_subscriptions,
            is_rejoin: self.rejoin_stream,
            spies_simulate_connection: self.spies_simulate_connection,
            group: self.receiver_group_consideration,
            receiver_window_length: self.initial_window_length as i32,
            socket_sndbuf_length: self.socket_send_buffer_length,
            socket_rcvbuf_length: self.socket_receive_buffer_length,
        }
    }

    /// Checks what no setting can check alone.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let interval = self.timer_interval_ns;
        let more_than_interval = |setting: &str, value: i64| {
            if value > interval {
                return Ok(());
            }
            let rule = format!("must be more than aeron.timer.interval={interval}");
            Err(ConfigError::new(setting, value, rule))
        };
        more_than_interval("aeron.client.liveness.timeout", self.client_liveness_timeout_ns)?;
        more_than_interval(
            "aeron.untethered.window.limit.timeout",
            self.untethered_window_limit_timeout_ns,
        )?;
        if let Some(linger) = self.untethered_linger_timeout_ns {
            more_than_interval("aeron.untethered.linger.timeout", linger)?;
        }
        more_than_interval(
            "aeron.untethered.resting.timeout",
            self.untethered_resting_timeout_ns,
        )?;
        if self.publication_unblock_timeout_ns <= self.client_liveness_timeout_ns {
            return Err(ConfigError::new(
                "aeron.publication.unblock.timeout",
                self.publication_unblock_timeout_ns,
                format!(
                    "must be more than aeron.client.liveness.timeout={}",
                    self.client_liveness_timeout_ns
                ),
            ));
        }
        self.validate_lengths()?;
        self.validate_idle()
    }

    fn validate_lengths(&self) -> Result<(), ConfigError> {
        for (setting, mtu, term) in [
            ("aeron.mtu.length", self.mtu_length, self.term_buffer_length),
            (
                "aeron.ipc.mtu.length",
                self.ipc_mtu_length,
                self.ipc_term_buffer_length,
            ),
        ] {
            let max_message_length = (term / 8).min(16 * MIB);
            if mtu > max_message_length {
                let rule = format!(
                    "must not be above the largest message of a term of {term} bytes, {max_message_length}"
                );
                return Err(ConfigError::new(setting, mtu, rule));
            }
        }
        if self.initial_window_length < self.mtu_length {
            return Err(ConfigError::new(
                "aeron.rcv.initial.window.length",
                self.initial_window_length,
                format!("must not be less than aeron.mtu.length={}", self.mtu_length),
            ));
        }
        if self.socket_receive_buffer_length != 0
            && self.initial_window_length > self.socket_receive_buffer_length
        {
            return Err(ConfigError::new(
                "aeron.rcv.initial.window.length",
                self.initial_window_length,
                format!(
                    "must not be above aeron.socket.so_rcvbuf={}",
                    self.socket_receive_buffer_length
                ),
            ));
        }
        if self.socket_send_buffer_length != 0 && self.mtu_length > self.socket_send_buffer_length {
            return Err(ConfigError::new(
                "aeron.mtu.length",
                self.mtu_length,
                format!(
                    "must not be above aeron.socket.so_sndbuf={}",
                    self.socket_send_buffer_length
                ),
            ));
        }
        if self.reserved_session_id_low > self.reserved_session_id_high {
            return Err(ConfigError::new(
                "aeron.publication.reserved.session.id.low",
                self.reserved_session_id_low,
                format!(
                    "must not be above aeron.publication.reserved.session.id.high={}",
                    self.reserved_session_id_high
                ),
            ));
        }
        Ok(())
    }

    fn validate_idle(&self) -> Result<(), ConfigError> {
        for (setting, idle) in [
            ("aeron.conductor.idle.strategy", &self.conductor_idle),
            ("aeron.sender.idle.strategy", &self.sender_idle),
            ("aeron.receiver.idle.strategy", &self.receiver_idle),
            ("aeron.sharednetwork.idle.strategy", &self.shared_network_idle),
            ("aeron.shared.idle.strategy", &self.shared_idle),
            (
                "aeron.driver.native.resource.agent.idle.strategy",
                &self.resource_agent_idle,
            ),
        ] {
            if let Err(rule) = idle.strategy() {
                return Err(ConfigError::new(setting, &idle.name, rule));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
