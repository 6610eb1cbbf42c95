//! How far a sender may go, and how many repairs it may have under way.

use headrace_protocol::channel::{FlowControlParam, FlowControlStrategy, PublicationParams};
use headrace_protocol::flow::{FlowControl, Group, MaxFlowControl, MinFlowControl};

use crate::config::{DriverConfig, UnicastFlowControl};
use crate::errors::CommandError;

/// Repairs under way at once for a single receiver.
const UNICAST_MAX_RESEND: usize = 1;

/// What the sender is given with a publication.
pub(crate) struct Sending {
    pub(crate) flow_control: Box<dyn FlowControl>,
    /// Repairs under way at once.
    pub(crate) max_resend: usize,
}

/// For a publication to one receiver, or to a group of them as the channel or the settings say. Fails for a strategy of
/// groups on a channel that has none.
pub(crate) fn flow_control(
    config: &DriverConfig,
    params: &PublicationParams,
    has_group_semantics: bool,
    channel: &str,
) -> Result<Sending, CommandError> {
    if has_group_semantics {
        Ok(Sending {
            flow_control: of_group(params.flow_control),
            max_resend: params.max_resend,
        })
    } else if params.has_flow_control {
        Err(CommandError::generic(format!(
            "unsupported unicast flow control strategy: fc is for channels with a group of receivers, multicast or \
             multi-destination; remove it, channel={channel}"
        )))
    } else {
        Ok(Sending {
            flow_control: of_one(config),
            max_resend: UNICAST_MAX_RESEND,
        })
    }
}

fn of_one(config: &DriverConfig) -> Box<dyn FlowControl> {
    let window_multiple = config.unicast_flow_control_rrwm as i32;
    match config.unicast_flow_control {
        UnicastFlowControl::Unicast => Box::new(MaxFlowControl::new(window_multiple)),
        UnicastFlowControl::AsGroup(strategy) => of_group(FlowControlParam {
            strategy,
            retransmit_window_multiple: window_multiple,
            ..config.channel_defaults().flow_control
        }),
    }
}

fn of_group(param: FlowControlParam) -> Box<dyn FlowControl> {
    let window_multiple = param.retransmit_window_multiple;
    let slowest_of = |tag| -> Box<dyn FlowControl> {
        let group = Group {
            tag,
            min_size: param.group_min_size,
            receiver_timeout_ns: param.receiver_timeout_ns,
        };
        Box::new(MinFlowControl::new(group, window_multiple))
    };
    match param.strategy {
        FlowControlStrategy::Max => Box::new(MaxFlowControl::new(window_multiple)),
        FlowControlStrategy::Min => slowest_of(None),
        FlowControlStrategy::Tagged => slowest_of(Some(param.group_tag)),
    }
}

#[cfg(test)]
mod tests {
    use headrace_protocol::ErrorCode;
    use headrace_protocol::channel::ChannelUri;

    use super::*;

    const WINDOW_LENGTH: i32 = 128 * 1024;

    fn supplied(config: &DriverConfig, text: &str, has_group: bool) -> Result<Sending, CommandError> {
        let channel = format!("aeron:udp?endpoint=localhost:24325{text}");
        let uri = ChannelUri::parse(&channel).unwrap();
        let params = PublicationParams::from_uri(&uri, &config.channel_defaults()).unwrap();
        flow_control(config, &params, has_group, &channel)
    }

    /// What tells strategies apart: whether receivers are counted, and the windows that one NAK brings back.
    fn traits(sending: &Sending) -> (bool, bool, i32, usize) {
        let flow = &sending.flow_control;
        (
            flow.receiver_count().is_some(),
            flow.has_required_receivers(),
            flow.retransmit_length_max(1 << 30) / WINDOW_LENGTH,
            sending.max_resend,
        )
    }

    #[test]
    fn the_channel_decides_and_else_the_settings() {
        let mut config = DriverConfig::default();
        let of = |config: &DriverConfig, text, has_group| traits(&supplied(config, text, has_group).unwrap());
        assert_eq!(of(&config, "|max-resend=9", false), (false, true, 16, 1));
        assert_eq!(of(&config, "|max-resend=9", true), (false, true, 4, 9));
        assert_eq!(of(&config, "|fc=min", true), (true, true, 4, 16));
        assert_eq!(of(&config, "|fc=tagged,g:/1,rrwm:2", true), (true, false, 2, 16));
        for (name, value) in [
            ("aeron.multicast.FlowControl.supplier", "multicast_tagged"),
            ("aeron.multicast.flow.control.rrwm", "3"),
            ("aeron.flow.control.group.tag", "1001"),
            ("aeron.flow.control.group.min.size", "2"),
            ("aeron.flow.control.receiver.timeout", "7s"),
            ("aeron.max.resend", "5"),
        ] {
            config.set(name, value).unwrap();
        }
        let flow = config.channel_defaults().flow_control;
        assert_eq!((flow.group_tag, flow.receiver_timeout_ns), (1001, 7_000_000_000));
        assert_eq!(of(&config, "", true), (true, false, 3, 5));
        assert_eq!(of(&config, "|fc=max", true), (false, true, 3, 5));
        assert_eq!(
            of(&config, "", false),
            (false, true, 16, 1),
            "one receiver is no group"
        );
        config
            .set("aeron.unicast.FlowControl.supplier", "multicast_min")
            .unwrap();
        assert_eq!(
            of(&config, "", false),
            (true, false, 16, 1),
            "unless the settings treat it as one"
        );
        config
            .set(
                "aeron.unicast.flow.control.strategy",
                "io.aeron.driver.UnicastFlowControl",
            )
            .unwrap();
        assert_eq!(of(&config, "", false), (false, true, 16, 1));
    }

    #[test]
    fn one_receiver_has_no_strategy_to_choose() {
        let refused = supplied(&DriverConfig::default(), "|fc=max", false);
        let error = refused.err().unwrap();
        assert_eq!(error.code, ErrorCode::GenericError);
        assert!(
            error
                .detail
                .starts_with("unsupported unicast flow control strategy"),
            "{error:?}"
        );
    }
}
