//! The raw tail of a partition: term id in the upper half, next free offset in the lower.
//!
//! The offset runs past the end of the term, because concurrent publishers add before they know whether they
//! fit; each reader of it caps it.

/// Packs a term id and an offset.
#[inline]
pub fn pack(term_id: i32, term_offset: usize) -> i64 {
    (i64::from(term_id) << 32) | (term_offset as i64 & 0xffff_ffff)
}

/// Term that the tail belongs to.
#[inline]
pub fn term_id(raw_tail: i64) -> i32 {
    (raw_tail >> 32) as i32
}

/// Offset of the tail, capped at the end of the term.
#[inline]
pub fn term_offset(raw_tail: i64, term_length: usize) -> usize {
    (raw_tail as u32 as usize).min(term_length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_survive_packing_whatever_their_signs() {
        for id in [0, 1, -1, i32::MIN, i32::MAX] {
            for offset in [0usize, 32, 65_536, 0xffff_ffe0] {
                let raw = pack(id, offset);
                assert_eq!((term_id(raw), term_offset(raw, usize::MAX)), (id, offset));
            }
        }
    }

    #[test]
    fn an_overshooting_tail_stands_at_the_end_of_the_term() {
        assert_eq!(term_offset(pack(7, 65_600), 65_536), 65_536);
    }
}
