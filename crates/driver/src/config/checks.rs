//! Checks of settings against each other.

use headrace_buffers::cnc::CncLengths;

use super::settings::{SETTINGS, property};
use super::{ConfigError, DriverConfig};

/// Longest message of a term of any length.
const MESSAGE_LENGTH_MAX: usize = 16 * 1024 * 1024;

/// A number that a setting has.
struct Number {
    property: &'static str,
    value: i64,
    /// The value as it is set, with its unit.
    text: String,
}

macro_rules! number {
    ($config:ident.$field:ident) => {
        Number {
            property: property::$field,
            value: $config.$field as i64,
            text: shown($config, property::$field),
        }
    };
}

impl Number {
    fn must_exceed(&self, least: &Self) -> Result<(), ConfigError> {
        self.must(self.value > least.value, "be more than", least)
    }

    fn must_not_be_less_than(&self, least: &Self) -> Result<(), ConfigError> {
        self.must(self.value >= least.value, "not be less than", least)
    }

    fn must_not_exceed(&self, most: &Self) -> Result<(), ConfigError> {
        self.must(self.value <= most.value, "not be above", most)
    }

    fn must(&self, is_kept: bool, relation: &str, other: &Self) -> Result<(), ConfigError> {
        if is_kept {
            return Ok(());
        }
        let rule = format!("must {relation} {}={}", other.property, other.text);
        Err(ConfigError::new(self.property, &self.text, rule))
    }

    fn must_fit_a_term(&self, term_length: usize) -> Result<(), ConfigError> {
        let most = (term_length / 8).min(MESSAGE_LENGTH_MAX);
        if self.value <= most as i64 {
            return Ok(());
        }
        let rule = format!("must not be above the largest message of a term of {term_length} bytes, {most}");
        Err(ConfigError::new(self.property, &self.text, rule))
    }
}

fn shown(config: &DriverConfig, property: &str) -> String {
    let setting = SETTINGS.iter().find(|setting| setting.property == Some(property));
    setting.map(|setting| (setting.show)(config)).unwrap_or_default()
}

impl DriverConfig {
    /// Checks the settings against each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.validate_together().map_err(|mut error| {
            // Nothing else is told of a driver that does not start.
            if let Some(note) = self.noted.get(error.setting.as_str()) {
                error.rule = format!("{}; {note}", error.rule);
            }
            error
        })
    }

    fn validate_together(&self) -> Result<(), ConfigError> {
        self.validate_timeouts()?;
        self.validate_lengths()?;
        self.validate_reserved_session_ids()?;
        self.validate_names()?;
        self.interceptors(0)?;
        self.validate_idle()
    }

    fn validate_timeouts(&self) -> Result<(), ConfigError> {
        let interval = number!(self.timer_interval_ns);
        let liveness = number!(self.client_liveness_timeout_ns);
        liveness.must_exceed(&interval)?;
        number!(self.untethered_window_limit_timeout_ns).must_exceed(&interval)?;
        if let Some(value) = self.untethered_linger_timeout_ns {
            let property = property::untethered_linger_timeout_ns;
            let text = shown(self, property);
            Number {
                property,
                value,
                text,
            }
            .must_exceed(&interval)?;
        }
        number!(self.untethered_resting_timeout_ns).must_exceed(&interval)?;
        number!(self.publication_unblock_timeout_ns).must_exceed(&liveness)
    }

    /// The driver always finds a free id: it cannot have half of all ids in use.
    fn validate_reserved_session_ids(&self) -> Result<(), ConfigError> {
        let low = number!(self.publication_reserved_session_id_low);
        let high = number!(self.publication_reserved_session_id_high);
        low.must_not_exceed(&high)?;
        let most = i64::from(i32::MAX);
        if high.value - low.value <= most {
            return Ok(());
        }
        let rule = format!(
            "must be at most {most} above {}={}, which leaves the driver half of all ids to choose from",
            low.property, low.text
        );
        Err(ConfigError::new(high.property, high.text, rule))
    }

    /// The error log takes what the other parts of the CnC file leave, in words of 64 bits.
    fn validate_error_log(&self) -> Result<(), ConfigError> {
        let lengths = CncLengths {
            to_driver: self.conductor_buffer_length,
            to_clients: self.clients_buffer_length,
            counters_values: self.counters_buffer_length,
            error_log: self.error_buffer_length,
        };
        let others = lengths.total() - self.error_buffer_length;
        let most = (i32::MAX as usize).saturating_sub(others) & !7;
        if self.error_buffer_length.is_multiple_of(8) && self.error_buffer_length <= most {
            return Ok(());
        }
        let error_log = number!(self.error_buffer_length);
        let rule = format!(
            "must be a multiple of 8, and at most {most}: cnc.dat, {others} bytes without it, must be shorter than 2 GiB"
        );
        Err(ConfigError::new(error_log.property, error_log.value, rule))
    }

    fn validate_lengths(&self) -> Result<(), ConfigError> {
        self.validate_error_log()?;
        let mtu = number!(self.mtu_length);
        mtu.must_fit_a_term(self.term_buffer_length)?;
        number!(self.ipc_mtu_length).must_fit_a_term(self.ipc_term_buffer_length)?;
        let window = number!(self.receiver_initial_window_length);
        window.must_not_be_less_than(&mtu)?;
        // 0 leaves a buffer to the kernel.
        if self.socket_receive_buffer_length != 0 {
            window.must_not_exceed(&number!(self.socket_receive_buffer_length))?;
        }
        if self.socket_send_buffer_length != 0 {
            mtu.must_not_exceed(&number!(self.socket_send_buffer_length))?;
        }
        Ok(())
    }
}
