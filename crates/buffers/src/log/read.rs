//! Reading committed frames, in order, from one term.
//!
//! Every reader takes the offset it starts from by reference and moves it past a fragment before the handler
//! sees that fragment. So whatever way the handler leaves (an error, a panic), the caller knows how far the
//! stream was consumed, and a fragment that fails is not delivered again. Padding is skipped, not counted.
//! A reader stops at the first slot without a sound committed frame; [`frame::malformed_length`] tells a slot
//! that will never become one from a slot that is merely empty.

use std::convert::Infallible;

use crate::{AtomicBuffer, Memory};

use super::frame::{self, FRAME_ALIGNMENT, HEADER_LENGTH};
use super::header::Header;
use super::position::TermGeometry;

/// What a controlled handler wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Stop, and deliver this fragment again next time.
    Abort,
    /// Stop after this fragment.
    Break,
    /// Store the position now, then go on.
    Commit,
    /// Go on.
    Continue,
}

/// A handler that has nothing to say goes on.
impl From<()> for Action {
    #[inline(always)]
    fn from((): ()) -> Self {
        Self::Continue
    }
}

/// A run of whole frames, as the block reader found it.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// The frames; of a padding frame only its header, since what follows may still be written by a publisher
    /// whose claim was taken away.
    pub bytes: &'a [u8],
    /// Bytes of the term that the block covers.
    pub length: usize,
    /// Offset of the first frame.
    pub term_offset: usize,
    /// Session id of the first frame.
    pub session_id: i32,
    /// Term id of the first frame.
    pub term_id: i32,
    term: &'a AtomicBuffer,
}

impl Block<'_> {
    /// The bytes where they lie in the log, in memory that stays mapped as long as the result is held.
    pub fn in_place(&self) -> AtomicBuffer {
        self.term.slice(self.term_offset, self.bytes.len())
    }
}

/// Passes up to `fragment_limit` fragments that start before `limit_offset` to `handler`; returns their count.
#[inline]
pub fn read<F>(
    term: &AtomicBuffer,
    geometry: TermGeometry,
    offset: &mut usize,
    limit_offset: usize,
    fragment_limit: usize,
    mut handler: F,
) -> usize
where
    F: FnMut(&[u8], Header<'_>),
{
    let result = try_read(
        term,
        geometry,
        offset,
        limit_offset,
        fragment_limit,
        |payload, header| {
            handler(payload, header);
            Ok::<(), Infallible>(())
        },
    );
    match result {
        Ok(count) => count,
        Err(never) => match never {},
    }
}

/// As [`read`], with a handler that may fail: the read stops, past the fragment that failed.
#[inline]
pub fn try_read<F, E>(
    term: &AtomicBuffer,
    geometry: TermGeometry,
    offset: &mut usize,
    limit_offset: usize,
    fragment_limit: usize,
    mut handler: F,
) -> Result<usize, E>
where
    F: FnMut(&[u8], Header<'_>) -> Result<(), E>,
{
    walk(term, offset, limit_offset, fragment_limit, |at, length, _| {
        handler(
            payload(term, at, length),
            Header::in_place(term, at, length, geometry),
        )?;
        Ok(Action::Continue)
    })
}

/// As [`try_read`], with a handler that steers. `commit` is called with the offset reached so far whenever the
/// handler asks for the position to be stored.
#[inline]
pub fn try_read_controlled<F, C, E>(
    term: &AtomicBuffer,
    geometry: TermGeometry,
    offset: &mut usize,
    limit_offset: usize,
    fragment_limit: usize,
    mut handler: F,
    mut commit: C,
) -> Result<usize, E>
where
    F: FnMut(&[u8], Header<'_>) -> Result<Action, E>,
    C: FnMut(usize),
{
    walk(term, offset, limit_offset, fragment_limit, |at, length, next| {
        let action = handler(
            payload(term, at, length),
            Header::in_place(term, at, length, geometry),
        )?;
        if action == Action::Commit {
            commit(next);
        }
        Ok(action)
    })
}

/// As [`try_read_controlled`], with a handler that cannot fail.
#[inline]
pub fn read_controlled<F, C>(
    term: &AtomicBuffer,
    geometry: TermGeometry,
    offset: &mut usize,
    limit_offset: usize,
    fragment_limit: usize,
    mut handler: F,
    commit: C,
) -> usize
where
    F: FnMut(&[u8], Header<'_>) -> Action,
    C: FnMut(usize),
{
    let result = try_read_controlled(
        term,
        geometry,
        offset,
        limit_offset,
        fragment_limit,
        |payload, header| Ok::<Action, Infallible>(handler(payload, header)),
        commit,
    );
    match result {
        Ok(count) => count,
        Err(never) => match never {},
    }
}

/// The offset that bounds a read from `position` to frames starting before `limit_position`.
#[inline]
pub fn bounded_limit_offset(geometry: TermGeometry, position: i64, limit_position: i64) -> usize {
    let offset = geometry.term_offset(position);
    let room = geometry.term_length() - offset;
    let wanted = usize::try_from(limit_position.saturating_sub(position)).unwrap_or(0);
    offset + wanted.min(room)
}

/// Passes one run of whole frames of at most `block_length_limit` bytes to `handler`; returns its length. A
/// padding frame is a block of its own, whatever its length. A block whose handler fails is not consumed.
#[inline]
pub fn try_read_block<F, E>(
    term: &AtomicBuffer,
    offset: &mut usize,
    block_length_limit: usize,
    handler: F,
) -> Result<usize, E>
where
    F: FnOnce(Block<'_>) -> Result<(), E>,
{
    let start = *offset;
    let (length, padding) = scan_block(term, start, block_length_limit);
    if length == 0 {
        return Ok(0);
    }
    let readable_length = if padding { HEADER_LENGTH } else { length };
    // SAFETY: the scan found these bytes committed; the driver zeroes them only after this reader's position,
    // which is stored after the handler returns, has passed them.
    let bytes = unsafe { term.bytes(start, readable_length) };
    handler(Block {
        bytes,
        length,
        term_offset: start,
        session_id: frame::session_id(term, start),
        term_id: frame::term_id(term, start),
        term,
    })?;
    *offset = start + length;
    Ok(length)
}

/// How many frames ahead of a scan a frame is asked for, where it is if those between are as long as the last. A scan
/// touches the headers alone, and would else wait for each to come from the core that wrote it: up to a third of the
/// time of a recording.
const PREFETCH_FRAMES: usize = 16;

/// Length of the block at `offset`, and whether it is a padding frame.
fn scan_block<M: Memory>(term: &M, offset: usize, block_length_limit: usize) -> (usize, bool) {
    if !offset.is_multiple_of(FRAME_ALIGNMENT) {
        return (0, false);
    }
    let limit = offset.saturating_add(block_length_limit).min(term.capacity());
    let mut at = offset;
    while at < limit {
        let Some(found) = frame::committed(term, at) else {
            break;
        };
        if frame::is_padding(term, at) {
            if at == offset {
                return (found.span, true);
            }
            break;
        }
        if at + found.span > limit {
            break;
        }
        at += found.span;
        term.prefetch(at + PREFETCH_FRAMES * found.span);
    }
    (at.saturating_sub(offset), false)
}

/// Visits committed data frames with their offset, length and the offset of the next frame.
#[inline(always)]
pub(super) fn walk<M, F, E>(
    term: &M,
    offset: &mut usize,
    limit_offset: usize,
    fragment_limit: usize,
    mut visit: F,
) -> Result<usize, E>
where
    M: Memory,
    F: FnMut(usize, usize, usize) -> Result<Action, E>,
{
    let limit = limit_offset.min(term.capacity());
    let mut at = *offset;
    let mut count = 0;
    if !at.is_multiple_of(FRAME_ALIGNMENT) {
        return Ok(0);
    }
    while count < fragment_limit && at < limit {
        let Some(found) = frame::committed(term, at) else {
            break;
        };
        let this = at;
        at += found.span;
        *offset = at;
        if frame::is_padding(term, this) {
            continue;
        }
        match visit(this, found.length, at)? {
            Action::Continue | Action::Commit => count += 1,
            Action::Break => return Ok(count + 1),
            Action::Abort => {
                *offset = this;
                break;
            }
        }
    }
    Ok(count)
}

#[inline(always)]
fn payload(term: &AtomicBuffer, offset: usize, length: usize) -> &[u8] {
    // SAFETY: a committed frame is not written until the driver zeroes it, and the driver waits for the
    // position of this reader, which its caller stores only after the handler is done.
    unsafe { term.bytes(offset + HEADER_LENGTH, length - HEADER_LENGTH) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::frame::{FLAGS_UNFRAGMENTED, TYPE_DATA, TermIdentity};

    const LENGTH: usize = 65_536;
    const IDENTITY: TermIdentity = TermIdentity {
        session_id: 1,
        stream_id: 2,
        term_id: 11,
    };

    fn geometry() -> TermGeometry {
        TermGeometry::new(10, LENGTH)
    }

    fn put(term: &AtomicBuffer, offset: usize, payload: &[u8]) -> usize {
        let length = HEADER_LENGTH + payload.len();
        let kind = frame::kind(FLAGS_UNFRAGMENTED, TYPE_DATA);
        frame::claim(term, offset, length, kind, IDENTITY);
        term.put_bytes(offset + HEADER_LENGTH, payload);
        frame::commit(term, offset, length);
        offset + crate::align(length, FRAME_ALIGNMENT)
    }

    /// Frames "a", a pad of 64, "bb", "ccc", then nothing.
    fn sample() -> AtomicBuffer {
        let term = AtomicBuffer::allocate(LENGTH);
        let pad = put(&term, 0, b"a");
        frame::put_padding(&term, pad, 64, IDENTITY);
        let third = put(&term, pad + 64, b"bb");
        put(&term, third, b"ccc");
        term
    }

    #[test]
    fn fragments_come_in_order_with_their_positions_and_padding_is_skipped() {
        let term = sample();
        let (mut offset, mut seen) = (0, Vec::new());
        let count = read(&term, geometry(), &mut offset, LENGTH, 10, |payload, header| {
            seen.push((
                payload.to_vec(),
                header.position() - LENGTH as i64,
                header.term_id(),
            ));
        });
        assert_eq!((count, offset), (3, 256));
        assert_eq!(
            seen,
            [
                (b"a".to_vec(), 64, 11),
                (b"bb".to_vec(), 192, 11),
                (b"ccc".to_vec(), 256, 11)
            ]
        );
    }

    #[test]
    fn the_fragment_limit_and_the_offset_limit_both_stop_a_read() {
        let term = sample();
        let mut offset = 0;
        assert_eq!(read(&term, geometry(), &mut offset, LENGTH, 1, |_, _| {}), 1);
        assert_eq!(offset, 64);
        // A frame that starts below the bound is delivered whole.
        assert_eq!(read(&term, geometry(), &mut offset, 130, 10, |_, _| {}), 1);
        assert_eq!(offset, 192);
        assert_eq!(read(&term, geometry(), &mut offset, LENGTH, 0, |_, _| {}), 0);
    }

    #[test]
    fn the_offset_is_past_a_fragment_whose_handler_fails_or_panics() {
        let term = sample();
        let mut offset = 0;
        let result = try_read(&term, geometry(), &mut offset, LENGTH, 10, |payload, _| {
            if payload == b"bb" { Err("no") } else { Ok(()) }
        });
        assert_eq!((result, offset), (Err("no"), 192));

        let mut offset = 0;
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            read(&term, geometry(), &mut offset, LENGTH, 10, |_, _| {
                panic!("handler")
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(offset, 64);
    }

    #[test]
    fn a_controlled_handler_aborts_breaks_and_commits() {
        let term = sample();
        let (mut offset, mut committed) = (0, Vec::new());
        let mut actions = [Action::Commit, Action::Abort].into_iter();
        let count = read_controlled(
            &term,
            geometry(),
            &mut offset,
            LENGTH,
            10,
            |_, _| actions.next().unwrap(),
            |at| committed.push(at),
        );
        assert_eq!((count, offset, committed), (1, 128, vec![64]));
        let mut actions = [Action::Break].into_iter();
        let count = read_controlled(
            &term,
            geometry(),
            &mut offset,
            LENGTH,
            10,
            |_, _| actions.next().unwrap(),
            |_| {},
        );
        assert_eq!((count, offset), (1, 192));
    }

    #[test]
    fn blocks_are_whole_frames_and_a_pad_is_its_own_block() {
        let term = sample();
        let (mut offset, mut blocks) = (0, Vec::new());
        loop {
            let length = try_read_block(&term, &mut offset, 100, |block| {
                blocks.push((block.term_offset, block.length, block.bytes.len()));
                Ok::<(), ()>(())
            })
            .unwrap();
            if length == 0 {
                break;
            }
        }
        assert_eq!(blocks, [(0, 64, 64), (64, 64, 32), (128, 64, 64), (192, 64, 64)]);
        let mut offset = 128;
        let length = try_read_block(&term, &mut offset, LENGTH, |_| Ok::<(), ()>(())).unwrap();
        assert_eq!((length, offset), (128, 256));
    }

    #[test]
    fn a_block_whose_handler_fails_is_given_again() {
        let (term, mut offset) = (sample(), 0);
        let failed = try_read_block(&term, &mut offset, 100, |block| Err(block.length));
        assert_eq!((failed, offset), (Err(64), 0));
        let length = try_read_block(&term, &mut offset, 100, |_| Ok::<(), ()>(()));
        assert_eq!((length, offset), (Ok(64), 64));
    }

    #[test]
    fn a_bound_is_capped_by_the_term_and_never_lies_behind() {
        let geometry = geometry();
        let position = 3 * LENGTH as i64 + 64;
        assert_eq!(bounded_limit_offset(geometry, position, position + 96), 160);
        assert_eq!(bounded_limit_offset(geometry, position, i64::MAX), LENGTH);
        assert_eq!(bounded_limit_offset(geometry, position, 0), 64);
    }

    #[test]
    fn a_start_off_the_grid_or_outside_reads_nothing() {
        let term = sample();
        for mut offset in [4, 31, LENGTH, LENGTH + 32, usize::MAX - 31] {
            assert_eq!(read(&term, geometry(), &mut offset, usize::MAX, 10, |_, _| {}), 0);
            let block = try_read_block(&term, &mut offset, usize::MAX, |_| Ok::<(), ()>(()));
            assert_eq!(block, Ok(0));
        }
    }
}
