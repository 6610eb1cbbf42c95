//! When a publication may share the log of an existing one, and what it takes from one.

use super::InitialPosition;
use super::defaults::ChannelDefaults;
use super::publication::{PublicationParams, SessionIdParam};
use crate::channel::{ChannelError, ChannelUri, Media, keys};
use crate::text::excerpt;

/// What a live publication has that a new channel may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExistingPublication {
    /// Publisher instance.
    pub session_id: i32,
    /// Longest frame.
    pub mtu_length: usize,
    /// Length of each term.
    pub term_length: usize,
    /// Where the publication started.
    pub start: InitialPosition,
    /// Spies alone make it connected.
    pub spies_simulate_connection: bool,
}

impl PublicationParams {
    /// Takes session id, MTU and term length from the publication that `session-id=tag:<n>` names.
    ///
    /// Fails if the channel itself gives another value, or if the rest does not go with the lengths.
    pub fn adopt_tagged(
        &mut self,
        uri: &ChannelUri,
        defaults: &ChannelDefaults,
        tagged: &ExistingPublication,
    ) -> Result<(), ChannelError> {
        for (key, given, own, other) in [
            (keys::MTU, self.has_mtu_length, self.mtu_length, tagged.mtu_length),
            (
                keys::TERM_LENGTH,
                self.has_term_length,
                self.term_length,
                tagged.term_length,
            ),
        ] {
            if given && own != other {
                return Err(ChannelError::invalid(format!(
                    "{key}={own} does not match session-id tag value {key}={other}, channel={uri}"
                )));
            }
        }
        self.session_id = Some(SessionIdParam::Number(tagged.session_id));
        self.mtu_length = tagged.mtu_length;
        self.term_length = tagged.term_length;
        self.apply_lengths(uri, defaults)
    }

    /// Fails if the channel gives a value that the existing publication does not have.
    ///
    /// Only what the channel gives is compared; the first publication's values stay for everything else. But
    /// whether spies make it connected must be the same even if not given. A session id given by tag was
    /// replaced by [`PublicationParams::adopt_tagged`] before.
    pub fn check_matches(&self, existing: &ExistingPublication, channel: &str) -> Result<(), ChannelError> {
        let check = |name: &str, asked: Option<i64>, has: i64| match asked {
            Some(asked) if asked != has => Err(ChannelError::generic(format!(
                "existing publication has different '{name}': existing={has} requested={asked} channel={channel}"
            ))),
            _ => Ok(()),
        };
        check(
            "mtu",
            self.has_mtu_length.then_some(self.mtu_length as i64),
            existing.mtu_length as i64,
        )?;
        check(
            "term-length",
            self.has_term_length.then_some(self.term_length as i64),
            existing.term_length as i64,
        )?;
        if let Some(SessionIdParam::Number(asked)) = self.session_id {
            check("session-id", Some(asked.into()), existing.session_id.into())?;
        }
        let asked = self.initial_position;
        let start = existing.start;
        check(
            "init-term-id",
            asked.map(|asked| asked.initial_term_id.into()),
            start.initial_term_id.into(),
        )?;
        check(
            "term-id",
            asked.map(|asked| asked.term_id.into()),
            start.term_id.into(),
        )?;
        check(
            "term-offset",
            asked.map(|asked| asked.term_offset.into()),
            start.term_offset.into(),
        )?;
        if self.spies_simulate_connection != existing.spies_simulate_connection {
            return Err(ChannelError::generic(format!(
                "existing publication has different spiesSimulateConnection: existing={} requested={} channel={channel}",
                existing.spies_simulate_connection, self.spies_simulate_connection
            )));
        }
        Ok(())
    }

    /// One sentence for each parameter of the channel that has no effect, since the publication is shared and the channel
    /// that made it says otherwise.
    pub fn without_effect(
        &self,
        channel: &ChannelUri,
        first: &PublicationParams,
        first_channel: &ChannelUri,
    ) -> Vec<String> {
        // What only a network has is noted for every channel of shared memory that gives it.
        let is_udp = self.media == Media::Udp;
        let differs = [
            (
                keys::FLOW_CONTROL,
                is_udp && self.flow_control != first.flow_control,
            ),
            (
                keys::PUBLICATION_WINDOW,
                self.publication_window_length != first.publication_window_length,
            ),
            (keys::LINGER, self.linger_timeout_ns != first.linger_timeout_ns),
            (
                keys::END_OF_STREAM,
                self.signals_end_of_stream != first.signals_end_of_stream,
            ),
            (keys::MAX_RESEND, is_udp && self.max_resend != first.max_resend),
            (
                keys::UNTETHERED_WINDOW_LIMIT_TIMEOUT,
                self.untethered_window_limit_timeout_ns != first.untethered_window_limit_timeout_ns,
            ),
            (
                keys::UNTETHERED_LINGER_TIMEOUT,
                self.untethered_linger_timeout_ns != first.untethered_linger_timeout_ns,
            ),
            (
                keys::UNTETHERED_RESTING_TIMEOUT,
                self.untethered_resting_timeout_ns != first.untethered_resting_timeout_ns,
            ),
        ];
        let what = "the publication that it shares was added";
        let advice = "add an exclusive publication, or give all publications of the stream the same value";
        told(differs, channel, first_channel, what, advice)
    }
}

/// One sentence for each parameter that the channel gives, and that differs from what `what` was added with.
pub(super) fn told(
    differs: impl IntoIterator<Item = (&'static str, bool)>,
    channel: &ChannelUri,
    first_channel: &ChannelUri,
    what: &str,
    advice: &str,
) -> Vec<String> {
    let sentence = |(key, differs)| {
        let value = channel.get(key).filter(|_| differs)?;
        let has = match first_channel.get(key) {
            Some(has) => format!("with {key}={}", excerpt(has)),
            None => format!("without {key}"),
        };
        Some(format!(
            "channel parameter {key}={} has no effect here: {what} {has}; {advice}",
            excerpt(value)
        ))
    };
    differs.into_iter().filter_map(sentence).collect()
}
