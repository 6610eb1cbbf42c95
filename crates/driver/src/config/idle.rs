//! Idle strategies by the settings.

use headrace_sys::idle::{Control, IdleStrategy};

use super::settings::property;
use super::{ConfigError, DriverConfig};

/// The idle strategy of one thread.
#[derive(Clone, Copy, Debug)]
pub struct IdleSetting<'a> {
    property: &'static str,
    name: &'a str,
    init_args: Option<&'a str>,
}

impl IdleSetting<'_> {
    /// The strategy; `control` is for the controllable one. Fails if no strategy has this name and these arguments. As
    /// in the specification, arguments are ignored if the strategy takes none.
    pub fn strategy(&self, control: &Control) -> Result<IdleStrategy, ConfigError> {
        if IdleStrategy::is_controllable(self.name) {
            return Ok(IdleStrategy::Controlled(control.clone()));
        }
        let init_args = self
            .init_args
            .filter(|_| IdleStrategy::takes_arguments(self.name));
        IdleStrategy::parse(self.name, init_args)
            .map_err(|rule| ConfigError::new(self.property, self.name, rule))
    }
}

/// A method for each thread that can idle.
macro_rules! idle_settings {
    ($($(#[$note:meta])* $method:ident = $name:ident, $init_args:ident;)+) => {
        impl DriverConfig {
            $(
                $(#[$note])*
                pub fn $method(&self) -> IdleSetting<'_> {
                    IdleSetting {
                        property: property::$name,
                        name: &self.$name,
                        init_args: self.$init_args.as_deref(),
                    }
                }
            )+

            /// Checks every strategy, whatever the threading mode.
            pub(super) fn validate_idle(&self) -> Result<(), ConfigError> {
                $(self.$method().strategy(&Control::default())?;)+
                Ok(())
            }
        }
    };
}

idle_settings! {
    /// Of the conductor's thread.
    conductor_idle = conductor_idle_strategy, conductor_idle_strategy_init_args;
    /// Of the sender's thread.
    sender_idle = sender_idle_strategy, sender_idle_strategy_init_args;
    /// Of the receiver's thread.
    receiver_idle = receiver_idle_strategy, receiver_idle_strategy_init_args;
    /// Of the thread that sender and receiver share.
    shared_network_idle = shared_network_idle_strategy, shared_network_idle_strategy_init_args;
    /// Of the thread that all share.
    shared_idle = shared_idle_strategy, shared_idle_strategy_init_args;
    /// Of the resource agent's thread.
    resource_agent_idle = resource_agent_idle_strategy, resource_agent_idle_strategy_init_args;
}
