//! Arithmetic between stream positions and places in terms.
//!
//! A position counts bytes since the stream began. Term ids wrap at 32 bits because the first is random, so
//! terms are counted by wrapping difference and ids are never compared.

use super::descriptor::PARTITION_COUNT;

/// Position of a place in a term.
#[inline]
pub fn compute_position(
    term_id: i32,
    term_offset: usize,
    position_bits_to_shift: u32,
    initial_term_id: i32,
) -> i64 {
    term_begin_position(term_id, position_bits_to_shift, initial_term_id).wrapping_add(term_offset as i64)
}

/// Position of the first byte of a term.
#[inline]
pub fn term_begin_position(term_id: i32, position_bits_to_shift: u32, initial_term_id: i32) -> i64 {
    i64::from(term_id.wrapping_sub(initial_term_id)) << position_bits_to_shift
}

/// Id of the term that holds a position.
#[inline]
pub fn term_id_from_position(position: i64, position_bits_to_shift: u32, initial_term_id: i32) -> i32 {
    ((position >> position_bits_to_shift) as i32).wrapping_add(initial_term_id)
}

/// Partition that holds a position.
#[inline]
pub fn index_by_position(position: i64, position_bits_to_shift: u32) -> usize {
    index_by_term_count((position >> position_bits_to_shift) as i32)
}

/// Partition of a term, counted from the start of the stream.
#[inline]
pub fn index_by_term_count(term_count: i32) -> usize {
    // Counts are never negative in a sound log; as unsigned, a corrupt one still picks some partition.
    term_count as u32 as usize % PARTITION_COUNT
}

/// Position that a stream can never reach; positions do not wrap.
#[inline]
pub fn max_possible_position(term_length: usize) -> i64 {
    (term_length as i64) << 31
}

/// First term id and term length of a stream: what it takes to turn places into positions and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermGeometry {
    initial_term_id: i32,
    position_bits_to_shift: u32,
}

impl TermGeometry {
    /// `term_length` must be a power of two, as every checked term length is.
    #[inline]
    pub fn new(initial_term_id: i32, term_length: usize) -> Self {
        debug_assert!(term_length.is_power_of_two());
        Self {
            initial_term_id,
            position_bits_to_shift: term_length.trailing_zeros(),
        }
    }

    /// Id of the first term.
    #[inline]
    pub fn initial_term_id(self) -> i32 {
        self.initial_term_id
    }

    /// log2 of the term length.
    #[inline]
    pub fn position_bits_to_shift(self) -> u32 {
        self.position_bits_to_shift
    }

    /// Length of each term.
    #[inline]
    pub fn term_length(self) -> usize {
        1 << self.position_bits_to_shift
    }

    /// Position of a place in a term.
    #[inline]
    pub fn position(self, term_id: i32, term_offset: usize) -> i64 {
        compute_position(
            term_id,
            term_offset,
            self.position_bits_to_shift,
            self.initial_term_id,
        )
    }

    /// Id of the term that holds `position`.
    #[inline]
    pub fn term_id(self, position: i64) -> i32 {
        term_id_from_position(position, self.position_bits_to_shift, self.initial_term_id)
    }

    /// Offset of `position` in its term.
    #[inline]
    pub fn term_offset(self, position: i64) -> usize {
        position as usize & (self.term_length() - 1)
    }

    /// Partition that holds `position`.
    #[inline]
    pub fn partition(self, position: i64) -> usize {
        index_by_position(position, self.position_bits_to_shift)
    }

    /// Terms from the first up to `term_id`.
    #[inline]
    pub fn term_count(self, term_id: i32) -> i32 {
        term_id.wrapping_sub(self.initial_term_id)
    }

    /// Position that the stream can never reach.
    #[inline]
    pub fn max_possible_position(self) -> i64 {
        max_possible_position(self.term_length())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn positions_run_on_where_term_ids_wrap() {
        let geometry = TermGeometry::new(i32::MAX, 65_536);
        assert_eq!(geometry.position(i32::MAX, 65_504), 65_504);
        assert_eq!(geometry.position(i32::MIN, 32), 65_536 + 32);
        assert_eq!(geometry.term_id(65_536), i32::MIN);
        assert_eq!(geometry.max_possible_position(), 1 << 47);
    }

    proptest! {
        #[test]
        fn a_position_names_exactly_one_place(
            initial_term_id: i32,
            term_count in 0..=i32::MAX,
            bits in 16u32..=30,
            offset: u32,
        ) {
            let geometry = TermGeometry::new(initial_term_id, 1 << bits);
            let term_offset = (offset as usize & (geometry.term_length() - 1)) & !31;
            let term_id = initial_term_id.wrapping_add(term_count);
            let position = geometry.position(term_id, term_offset);
            prop_assert!((0..geometry.max_possible_position()).contains(&position));
            prop_assert_eq!(geometry.term_id(position), term_id);
            prop_assert_eq!(geometry.term_offset(position), term_offset);
            prop_assert_eq!(geometry.partition(position), (term_count % 3) as usize);
            prop_assert_eq!(geometry.term_count(term_id), term_count);
        }
    }
}
