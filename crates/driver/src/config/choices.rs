//! Settings that name one of a few choices: by this driver's names, and by those of Aeron's drivers, which name
//! functions in C and classes in Java. None of them loads anything.

use headrace_protocol::channel::{CongestionControlKind, FlowControlStrategy, GroupConsideration};
use headrace_protocol::settings::{Choice, Codec, Kind};

use super::modes::{
    ChannelEndpoints, FallbackLogger, NameResolver, TerminationValidator, ThreadNaming, ThreadingMode,
    UnicastFlowControl,
};

pub(super) const THREADING_MODES: Choice<Option<ThreadingMode>> = Choice {
    names: &[
        ("DEDICATED", Some(ThreadingMode::Dedicated)),
        ("SHARED_NETWORK", Some(ThreadingMode::SharedNetwork)),
        ("SHARED", Some(ThreadingMode::Shared)),
        ("INVOKER", Some(ThreadingMode::Invoker)),
    ],
    synonyms: &[],
};

pub(super) const THREAD_NAMING: Choice<ThreadNaming> = Choice {
    names: &[("classic", ThreadNaming::Classic), ("new", ThreadNaming::New)],
    synonyms: &[],
};

pub(super) const TERMINATION: Choice<TerminationValidator> = Choice {
    names: &[
        ("allow", TerminationValidator::Allow),
        ("deny", TerminationValidator::Deny),
    ],
    synonyms: &[
        (
            "aeron_driver_termination_validator_default_allow",
            TerminationValidator::Allow,
        ),
        (
            "aeron_driver_termination_validator_default_deny",
            TerminationValidator::Deny,
        ),
        (
            "io.aeron.driver.DefaultAllowTerminationValidator",
            TerminationValidator::Allow,
        ),
        (
            "io.aeron.driver.DefaultDenyTerminationValidator",
            TerminationValidator::Deny,
        ),
    ],
};

pub(super) const NAME_RESOLVER: Choice<NameResolver> = Choice {
    names: &[
        ("default", NameResolver::Default),
        ("driver", NameResolver::Driver),
        ("csv_table", NameResolver::CsvTable),
    ],
    synonyms: &[
        ("aeron_default_name_resolver_supplier", NameResolver::Default),
        ("aeron_driver_name_resolver_supplier", NameResolver::Driver),
        ("aeron_csv_table_name_resolver_supplier", NameResolver::CsvTable),
    ],
};

pub(super) const MULTICAST_FLOW_CONTROL: Choice<FlowControlStrategy> = Choice {
    names: &[
        ("multicast_max", FlowControlStrategy::Max),
        ("multicast_min", FlowControlStrategy::Min),
        ("multicast_tagged", FlowControlStrategy::Tagged),
    ],
    synonyms: &[
        (
            "aeron_max_multicast_flow_control_strategy_supplier",
            FlowControlStrategy::Max,
        ),
        (
            "aeron_min_flow_control_strategy_supplier",
            FlowControlStrategy::Min,
        ),
        (
            "aeron_tagged_flow_control_strategy_supplier",
            FlowControlStrategy::Tagged,
        ),
        (
            "io.aeron.driver.MaxMulticastFlowControlSupplier",
            FlowControlStrategy::Max,
        ),
        (
            "io.aeron.driver.MinMulticastFlowControlSupplier",
            FlowControlStrategy::Min,
        ),
        (
            "io.aeron.driver.TaggedMulticastFlowControlSupplier",
            FlowControlStrategy::Tagged,
        ),
    ],
};

/// The classes of strategies, for the setting that names one of them.
pub(super) const MULTICAST_FLOW_CONTROL_CLASS: Choice<FlowControlStrategy> = Choice {
    names: &[
        (
            "io.aeron.driver.MaxMulticastFlowControl",
            FlowControlStrategy::Max,
        ),
        (
            "io.aeron.driver.MinMulticastFlowControl",
            FlowControlStrategy::Min,
        ),
        (
            "io.aeron.driver.TaggedMulticastFlowControl",
            FlowControlStrategy::Tagged,
        ),
    ],
    synonyms: &[],
};

pub(super) const UNICAST_FLOW_CONTROL: Choice<UnicastFlowControl> = Choice {
    names: &[
        ("unicast_max", UnicastFlowControl::Unicast),
        (
            "multicast_max",
            UnicastFlowControl::AsGroup(FlowControlStrategy::Max),
        ),
        (
            "multicast_min",
            UnicastFlowControl::AsGroup(FlowControlStrategy::Min),
        ),
        (
            "multicast_tagged",
            UnicastFlowControl::AsGroup(FlowControlStrategy::Tagged),
        ),
    ],
    synonyms: &[
        (
            "aeron_unicast_flow_control_strategy_supplier",
            UnicastFlowControl::Unicast,
        ),
        (
            "aeron_max_multicast_flow_control_strategy_supplier",
            UnicastFlowControl::AsGroup(FlowControlStrategy::Max),
        ),
        (
            "aeron_min_flow_control_strategy_supplier",
            UnicastFlowControl::AsGroup(FlowControlStrategy::Min),
        ),
        (
            "aeron_tagged_flow_control_strategy_supplier",
            UnicastFlowControl::AsGroup(FlowControlStrategy::Tagged),
        ),
        (
            "io.aeron.driver.DefaultUnicastFlowControlSupplier",
            UnicastFlowControl::Unicast,
        ),
        (
            "io.aeron.driver.MaxMulticastFlowControlSupplier",
            UnicastFlowControl::AsGroup(FlowControlStrategy::Max),
        ),
        (
            "io.aeron.driver.MinMulticastFlowControlSupplier",
            UnicastFlowControl::AsGroup(FlowControlStrategy::Min),
        ),
        (
            "io.aeron.driver.TaggedMulticastFlowControlSupplier",
            UnicastFlowControl::AsGroup(FlowControlStrategy::Tagged),
        ),
    ],
};

/// The classes of strategies, for the setting that names one of them.
pub(super) const UNICAST_FLOW_CONTROL_CLASS: Choice<UnicastFlowControl> = Choice {
    names: &[
        ("io.aeron.driver.UnicastFlowControl", UnicastFlowControl::Unicast),
        (
            "io.aeron.driver.MaxMulticastFlowControl",
            UnicastFlowControl::AsGroup(FlowControlStrategy::Max),
        ),
        (
            "io.aeron.driver.MinMulticastFlowControl",
            UnicastFlowControl::AsGroup(FlowControlStrategy::Min),
        ),
        (
            "io.aeron.driver.TaggedMulticastFlowControl",
            UnicastFlowControl::AsGroup(FlowControlStrategy::Tagged),
        ),
    ],
    synonyms: &[],
};

pub(super) const SEND_ENDPOINTS: Choice<ChannelEndpoints> = Choice {
    names: &[
        (
            "io.aeron.driver.DefaultSendChannelEndpointSupplier",
            ChannelEndpoints::Default,
        ),
        (
            "io.aeron.driver.ext.DebugSendChannelEndpointSupplier",
            ChannelEndpoints::Debug,
        ),
    ],
    synonyms: &[],
};

pub(super) const RECEIVE_ENDPOINTS: Choice<ChannelEndpoints> = Choice {
    names: &[
        (
            "io.aeron.driver.DefaultReceiveChannelEndpointSupplier",
            ChannelEndpoints::Default,
        ),
        (
            "io.aeron.driver.ext.DebugReceiveChannelEndpointSupplier",
            ChannelEndpoints::Debug,
        ),
    ],
    synonyms: &[],
};

pub(super) const FALLBACK_LOGGER: Choice<FallbackLogger> = Choice {
    names: &[
        ("stderr", FallbackLogger::Stderr),
        ("stdout", FallbackLogger::Stdout),
        ("no_op", FallbackLogger::NoOp),
    ],
    synonyms: &[],
};

pub(super) const CONGESTION_CONTROL: Choice<Option<CongestionControlKind>> = Choice {
    names: &[
        ("default", None),
        ("static", Some(CongestionControlKind::Static)),
        ("cubic", Some(CongestionControlKind::Cubic)),
    ],
    synonyms: &[
        ("aeron_congestion_control_default_strategy_supplier", None),
        (
            "aeron_static_window_congestion_control_strategy_supplier",
            Some(CongestionControlKind::Static),
        ),
        (
            "aeron_cubic_congestion_control_strategy_supplier",
            Some(CongestionControlKind::Cubic),
        ),
        ("io.aeron.driver.DefaultCongestionControlSupplier", None),
        (
            "io.aeron.driver.ext.CubicCongestionControlSupplier",
            Some(CongestionControlKind::Cubic),
        ),
    ],
};

/// `true`, `infer`, and any other text for "never", as every driver reads it.
pub(super) struct Group;

impl Codec for Group {
    type Value = GroupConsideration;

    fn parse(&self, text: &str) -> Option<GroupConsideration> {
        Some(GroupConsideration::parse(text))
    }

    fn format(&self, value: &GroupConsideration) -> String {
        match value {
            GroupConsideration::ForceTrue => "true",
            GroupConsideration::Infer => "infer",
            GroupConsideration::ForceFalse => "false",
        }
        .to_owned()
    }

    fn rule(&self) -> String {
        "must be true, infer, or another text for false".to_owned()
    }

    fn kind(&self) -> Kind {
        Kind::Text
    }
}
