//! Idle strategies as settings give them.

use headrace_protocol::text::excerpt;
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
    /// The strategy; `control` is for the one that can be controlled. Fails when there is none of this name with these
    /// arguments. As the specification has it, arguments are ignored where the strategy takes none.
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

    /// What to tell of arguments that are ignored.
    fn doubt(&self) -> Option<String> {
        let init_args = self.init_args.filter(|args| !args.is_empty())?;
        (!IdleStrategy::takes_arguments(self.name)).then(|| {
            format!(
                "{}.init.args={} has no effect: idle strategy {} takes no arguments",
                self.property,
                excerpt(init_args),
                self.name
            )
        })
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

            /// What to tell of strategies with arguments that have no effect.
            pub(crate) fn idle_doubts(&self) -> Vec<String> {
                [$(self.$method().doubt(),)+].into_iter().flatten().collect()
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
