//! The driver's settings: one row each, which makes a typed field and the code that reads and shows it.
//!
//! A setting may be given by its property name (`aeron.dir`) or its environment name (`AERON_DIR`). Settings of Aeron's
//! drivers that cannot have an effect here are refused or noted when they ask for anything but what this driver does, so that
//! no user believes that a setting works when it does not.

mod aliases;
mod checks;
mod choices;
mod declarations;
mod default_directory;
mod error;
mod fetch;
mod idle;
mod interceptors;
mod modes;
mod names;
mod ports;
mod settings;
mod sources;
mod table;
mod without_effect;

use headrace_protocol::channel::{ChannelDefaults, FlowControlParam};
use headrace_protocol::settings::Setting;

pub use declarations::{AliasDeclaration, Ineffective, aliases, declarations, ineffective};
pub use error::ConfigError;
pub use idle::IdleSetting;
pub use modes::{
    ChannelEndpoints, FallbackLogger, ImageLimits, NameResolver, TerminationValidator, ThreadNaming,
    ThreadingMode, UnicastFlowControl,
};
pub use ports::PortRange;
pub use settings::{DriverConfig, SETTINGS};
pub use sources::Sources;

pub(crate) use settings::property;

/// Bytes of a socket's buffer for each byte of a local sender's window: the system counts more for a datagram than its bytes.
pub(crate) const BUFFER_PER_LOCAL_WINDOW: usize = 2;

impl DriverConfig {
    /// The defaults, overridden by the process's environment, then by `properties` in order.
    pub fn from_env_and_properties<'a>(
        properties: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ConfigError> {
        let mut sources = Sources::from_environment(std::env::vars_os());
        for (name, value) in properties {
            sources.put(name, value);
        }
        sources.into_config()
    }

    /// Changes one setting, by its property or its environment name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ConfigError> {
        match table::find(name) {
            Some((property, setting)) => setting.apply(self, property, value),
            None => Err(table::unknown(name, value)),
        }
    }

    /// One sentence for each name that looks like a misspelt setting, and for each value that has no effect together
    /// with the other settings. The driver puts them into its error log.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = self.misspelt.clone();
        doubts.extend(self.noted.values().cloned());
        doubts.extend(self.name_doubts());
        doubts.extend(self.interceptor_doubts());
        doubts
    }

    /// Every setting that has an effect, with its value, in the order of the table.
    pub fn entries(&self) -> Vec<(&'static str, String)> {
        let property_and_value = |setting: &Setting<Self>| Some((setting.property?, (setting.show)(self)));
        SETTINGS.iter().filter_map(property_and_value).collect()
    }

    /// How the agents are spread over threads. Without a setting [`MediaDriver::launch`](crate::MediaDriver::launch)
    /// decides.
    pub fn threading(&self) -> ThreadingMode {
        self.threading_mode.unwrap_or(ThreadingMode::Dedicated)
    }

    /// The limits for the images of remote publishers.
    pub fn image_limits(&self) -> ImageLimits {
        ImageLimits {
            count: self.image_limit,
            bytes: self.image_memory_limit,
        }
    }

    /// With a debugger at the driver, its time-outs of what lives are those for a debugger, if the settings have them.
    pub(crate) fn mind_debugger(&mut self, is_traced: bool) {
        let Some(timeout_ns) = self.debug_timeout_ns.filter(|_| is_traced) else {
            return;
        };
        for liveness_ns in [
            &mut self.client_liveness_timeout_ns,
            &mut self.image_liveness_timeout_ns,
            &mut self.publication_connection_timeout_ns,
        ] {
            *liveness_ns = timeout_ns;
        }
        // It must be longer than a client may be silent.
        let unblock_ns = timeout_ns.saturating_add(timeout_ns / 2);
        self.publication_unblock_timeout_ns = self.publication_unblock_timeout_ns.max(unblock_ns);
    }

    /// Whether senders measure how long to ignore further NAKs for bytes that they have sent again.
    pub fn adapts_retransmit_linger(&self) -> bool {
        self.adaptive_loss
            && self.retransmit_unicast_linger_ns == Self::default().retransmit_unicast_linger_ns
    }

    /// The window of a sender on this host, if it is wider than that of others; else 0.
    pub fn local_window_length(&self) -> usize {
        let is_default =
            self.receiver_initial_window_length == Self::default().receiver_initial_window_length;
        if is_default {
            self.receiver_local_window_length
        } else {
            0
        }
    }

    /// Length of the receive buffer to request for a socket whose channel sets none; 0 leaves it to the system. With
    /// the default setting it is enough for senders on this host.
    pub fn receive_buffer_length(&self) -> usize {
        let length = self.socket_receive_buffer_length;
        if length == Self::default().socket_receive_buffer_length {
            length.max(BUFFER_PER_LOCAL_WINDOW * self.local_window_length())
        } else {
            length
        }
    }

    /// The defaults of channel parameters.
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
            max_resend: self.resend_max,
            flow_control: FlowControlParam {
                strategy: self.multicast_flow_control,
                group_tag: self.flow_control_group_tag,
                group_min_size: self.flow_control_group_min_size,
                receiver_timeout_ns: self.flow_control_receiver_timeout_ns,
                retransmit_window_multiple: self.multicast_flow_control_rrwm as i32,
            },
            untethered_window_limit_timeout_ns: self.untethered_window_limit_timeout_ns,
            untethered_linger_timeout_ns: self.untethered_linger_timeout_ns,
            untethered_resting_timeout_ns: self.untethered_resting_timeout_ns,
            is_reliable: self.reliable_stream,
            is_tethered: self.tether_subscriptions,
            is_rejoin: self.rejoin_stream,
            spies_simulate_connection: self.spies_simulate_connection,
            group: self.receiver_group_consideration,
            receiver_window_length: self.receiver_initial_window_length as i32,
            local_window_length: self.local_window_length(),
            socket_sndbuf_length: self.socket_send_buffer_length,
            socket_rcvbuf_length: self.socket_receive_buffer_length,
        }
    }
}

#[cfg(test)]
mod tests;
