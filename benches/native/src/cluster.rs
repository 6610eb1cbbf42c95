//! A client of a cluster whose service sends each message back: how late answers come at a pace, and how many come.
//!
//! ```text
//! message: u64 number | u64 nanoseconds from the start to when it is to be sent | both again and again
//! ```

use std::error::Error;
use std::time::{Duration, Instant};

use headrace_client::{
    Client, ExclusivePublication, Offer, SESSION_HEADER_LENGTH, SessionHeader, Subscription,
    SubscriptionHandlers,
};
use headrace_sys::idle::IdleStrategy;

use crate::clients::Clients;

const INGRESS_STREAM_ID: i32 = 101;
const EGRESS_STREAM_ID: i32 = 102;
/// Of what the service sends back.
const LENGTH: usize = 100;
const FRAGMENT_LIMIT: usize = 256;
const BURST: u64 = 64;
const TIMEOUT: Duration = Duration::from_secs(60);
const SCHEMA: u16 = 111;
const SESSION_EVENT: u16 = 2;
const SESSION_CONNECT_REQUEST: u16 = 3;
const CORRELATION_ID: i64 = 1;
const OK: i32 = 0;

/// An open session.
struct Session {
    ingress: ExclusivePublication,
    egress: Subscription,
    header: SessionHeader,
    next: u64,
    answered: u64,
    // Open for as long as its streams are used.
    _client: Client,
}

impl Session {
    fn open(dir: &str, channels: [&str; 2]) -> Result<Self, Box<dyn Error>> {
        let client = Clients::connected(dir)?;
        let egress =
            client.add_subscription(channels[1], EGRESS_STREAM_ID, SubscriptionHandlers::default())?;
        let ingress = client.add_exclusive_publication(channels[0], INGRESS_STREAM_ID)?;
        let request = connect_request(channels[1]);
        let (start, mut opened, mut is_asked) = (Instant::now(), None, false);
        while opened.is_none() {
            is_asked = is_asked || matches!(ingress.offer(&request)?, Offer::Position(_));
            egress.poll(
                |message, _| opened = opened.take().or_else(|| session_event(message)),
                1,
            )?;
            if start.elapsed() > TIMEOUT {
                return Err(format!("no session was opened in {TIMEOUT:?}").into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let header = opened.ok_or("no session")??;
        Ok(Self {
            ingress,
            egress,
            header,
            next: 0,
            answered: 0,
            _client: client,
        })
    }

    /// Sends the next message, if there is room for it; says whether there was.
    fn send(&mut self, due_ns: u64) -> Result<bool, Box<dyn Error>> {
        let header = self.header.encode();
        match self
            .ingress
            .offer_parts(&[&header, &message(self.next, due_ns)])?
        {
            Offer::Position(_) => {
                self.next += 1;
                Ok(true)
            }
            Offer::BackPressured | Offer::AdminAction => Ok(false),
            refusal => Err(format!("the cluster takes no messages any more: {refusal:?}").into()),
        }
    }

    /// Takes answers, which are what was sent, each once and in order; gives how many came.
    fn take(&mut self, mut when_due: impl FnMut(u64)) -> Result<usize, Box<dyn Error>> {
        let (session_id, mut answered) = (self.header.cluster_session_id, self.answered);
        let mut wrong = None;
        self.egress.poll(
            |entry, _| match SessionHeader::decode(entry) {
                Some(header) if header.cluster_session_id == session_id => {
                    match due_ns(&entry[SESSION_HEADER_LENGTH..], answered) {
                        Some(due_ns) => when_due(due_ns),
                        None => wrong = Some(answered),
                    }
                    answered += 1;
                }
                _ => {}
            },
            FRAGMENT_LIMIT,
        )?;
        let taken = answered - self.answered;
        self.answered = answered;
        match wrong {
            Some(number) => Err(format!("answer {number} is not what was sent").into()),
            None => Ok(usize::try_from(taken)?),
        }
    }
}

/// Sends `rate` messages a second, and prints for each how many nanoseconds after the time when it was to be sent its
/// answer came; the first tenth warms up.
pub(crate) fn paced(
    dir: &str,
    channels: [&str; 2],
    [rate, samples]: [&str; 2],
) -> Result<(), Box<dyn Error>> {
    let (rate, samples): (u64, usize) = (rate.parse()?, samples.parse()?);
    let mut session = Session::open(dir, channels)?;
    let warming = samples / 10;
    let count = u64::try_from(samples + warming)?;
    let mut durations_ns = Vec::with_capacity(samples + warming);
    let mut idle = IdleStrategy::Yield;
    let start = Instant::now();
    let now_ns = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut last_ns = 0;
    while session.answered < count {
        let due_ns = session.next * 1_000_000_000 / rate;
        let is_sent = session.next < count && now_ns() >= due_ns && session.send(due_ns)?;
        let taken = session.take(|due_ns| durations_ns.push(now_ns().saturating_sub(due_ns)))?;
        last_ns = stalled_since(taken, last_ns, now_ns())?;
        idle.idle(taken + usize::from(is_sent));
    }
    durations_ns[warming..]
        .iter()
        .for_each(|duration| println!("{duration}"));
    Ok(())
}

/// Keeps `in_flight` messages unanswered, and prints `count nanoseconds` of the answers of each window.
pub(crate) fn throughput(
    dir: &str,
    channels: [&str; 2],
    [in_flight, windows, window_ms]: [&str; 3],
) -> Result<(), Box<dyn Error>> {
    let (in_flight, windows): (u64, usize) = (in_flight.parse()?, windows.parse()?);
    let window = Duration::from_millis(window_ms.parse()?);
    let mut session = Session::open(dir, channels)?;
    let mut idle = IdleStrategy::Yield;
    let mut last_ns = 0;
    let begin = Instant::now();
    for _ in 0..windows {
        let (start, before) = (Instant::now(), session.answered);
        while start.elapsed() < window {
            let mut sent = 0;
            while sent < BURST && session.next - session.answered < in_flight && session.send(0)? {
                sent += 1;
            }
            let taken = session.take(|_| ())?;
            last_ns = stalled_since(taken, last_ns, u64::try_from(begin.elapsed().as_nanos())?)?;
            idle.idle(taken + usize::try_from(sent)?);
        }
        println!("{} {}", session.answered - before, start.elapsed().as_nanos());
    }
    Ok(())
}

/// When an answer came last; an error if that is long ago.
fn stalled_since(taken: usize, last_ns: u64, now_ns: u64) -> Result<u64, String> {
    if taken > 0 {
        return Ok(now_ns);
    }
    if u128::from(now_ns - last_ns) > TIMEOUT.as_nanos() {
        return Err(format!("no answer came in {TIMEOUT:?}"));
    }
    Ok(last_ns)
}

fn message(number: u64, due_ns: u64) -> [u8; LENGTH] {
    let mut message = [0; LENGTH];
    let words = [number.to_le_bytes(), due_ns.to_le_bytes()].concat();
    for part in message.chunks_mut(words.len()) {
        part.copy_from_slice(&words[..part.len()]);
    }
    message
}

/// When a message was to be sent; nothing if it is not the one of this number, whole.
fn due_ns(answer: &[u8], number: u64) -> Option<u64> {
    let due_ns = u64::from_le_bytes(*answer.get(8..)?.first_chunk()?);
    (answer == message(number, due_ns)).then_some(due_ns)
}

fn connect_request(response_channel: &str) -> Vec<u8> {
    let mut request = Vec::new();
    for word in [16, SESSION_CONNECT_REQUEST, SCHEMA, 17] {
        request.extend_from_slice(&u16::to_le_bytes(word));
    }
    request.extend_from_slice(&CORRELATION_ID.to_le_bytes());
    request.extend_from_slice(&EGRESS_STREAM_ID.to_le_bytes());
    request.extend_from_slice(&PROTOCOL_VERSION.to_le_bytes());
    for text in [response_channel, "", ""] {
        request.extend_from_slice(&(text.len() as u32).to_le_bytes());
        request.extend_from_slice(text.as_bytes());
    }
    request
}

/// 0.3.0.
const PROTOCOL_VERSION: i32 = 3 << 8;

/// What the cluster says of the session that this program wants; nothing if the message says nothing of it.
fn session_event(message: &[u8]) -> Option<Result<SessionHeader, String>> {
    let template = u16::from_le_bytes(*message.get(2..)?.first_chunk()?);
    let long = |at: usize| Some(i64::from_le_bytes(*message.get(at..)?.first_chunk()?));
    if template != SESSION_EVENT || long(16)? != CORRELATION_ID {
        return None;
    }
    let code = i32::from_le_bytes(*message.get(36..)?.first_chunk()?);
    if code != OK {
        return Some(Err(format!("the cluster opens no session: event code {code}")));
    }
    Some(Ok(SessionHeader {
        cluster_session_id: long(8)?,
        leadership_term_id: long(24)?,
        timestamp: 0,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_by_its_number_and_by_each_byte() {
        let sent = message(7, 1_234);
        assert_eq!(due_ns(&sent, 7), Some(1_234));
        assert_eq!(due_ns(&sent, 8), None);
        assert_eq!(due_ns(&sent[..LENGTH - 1], 7), None);
        for place in 0..LENGTH {
            let mut bent = sent;
            bent[place] ^= 1;
            assert_eq!(due_ns(&bent, 7), None, "byte {place}");
        }
    }

    #[test]
    fn a_session_is_open_when_the_cluster_says_ok() {
        let mut event = vec![44, 0, 2, 0, 111, 0, 17, 0];
        for long in [5i64, CORRELATION_ID, 9] {
            event.extend_from_slice(&long.to_le_bytes());
        }
        event.extend_from_slice(&[0; 8]);
        let header = session_event(&event).and_then(Result::ok);
        assert_eq!(
            header.map(|header| (header.cluster_session_id, header.leadership_term_id)),
            Some((5, 9))
        );
        event[36] = 1;
        assert!(matches!(session_event(&event), Some(Err(_))));
        event[16] = 2;
        assert!(session_event(&event).is_none());
    }
}
