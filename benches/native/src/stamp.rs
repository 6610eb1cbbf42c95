//! Messages that say when they were sent, in a form in which other bytes show.

use std::time::Instant;

pub(crate) const LENGTH: usize = 32;
const STAMP_LENGTH: usize = size_of::<u64>();

/// A message of this moment: the nanoseconds since `epoch`, again and again.
pub(crate) fn message(epoch: Instant) -> [u8; LENGTH] {
    let stamp = since(epoch).to_le_bytes();
    std::array::from_fn(|index| stamp[index % STAMP_LENGTH])
}

/// How many nanoseconds a message that comes now took; an error if it is none that [`message`] made.
pub(crate) fn age_ns(payload: &[u8], epoch: Instant) -> Result<u64, String> {
    let now_ns = since(epoch);
    let stamp = payload.first_chunk().filter(|stamp: &&[u8; STAMP_LENGTH]| {
        payload.len() == LENGTH && payload.chunks(STAMP_LENGTH).all(|part| part == *stamp)
    });
    stamp
        .and_then(|stamp| now_ns.checked_sub(u64::from_le_bytes(*stamp)))
        .ok_or_else(|| format!("no message that was sent came as {payload:?}, {now_ns} ns after the start"))
}

fn since(epoch: Instant) -> u64 {
    u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_an_age_and_other_bytes_have_none() {
        let epoch = Instant::now();
        let sent = message(epoch);
        assert!(age_ns(&sent, epoch).is_ok());
        for wrong in [&sent[..LENGTH - 1], &[0xff; LENGTH], &[]] {
            assert!(age_ns(wrong, epoch).is_err(), "{wrong:?}");
        }
        for place in 0..LENGTH {
            let mut bent = sent;
            bent[place] ^= 1;
            assert!(age_ns(&bent, epoch).is_err(), "byte {place}");
        }
    }
}
