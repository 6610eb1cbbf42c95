//! Counter ids are handed out once, rest after they were freed, and are used up before allocation fails.

use std::collections::HashMap;

use headrace_buffers::counters::{
    CountersManager, METADATA_LENGTH, STATE_ALLOCATED, STATE_RECLAIMED, STATE_UNUSED, VALUE_LENGTH,
};
use headrace_buffers::{AtomicBuffer, BufferError};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Allocate,
    /// Free an id, which may be live, free or unheard of.
    Free {
        id: i32,
    },
    /// Let time pass.
    Wait {
        ms: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Allocate),
        2 => (-1..9i32).prop_map(|id| Step::Free { id }),
        1 => (0..150i64).prop_map(|ms| Step::Wait { ms }),
    ]
}

proptest! {
    #[test]
    fn an_id_is_not_used_again_before_it_has_rested(
        capacity in 1..8usize,
        reuse_timeout_ms in 0..200i64,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut manager = CountersManager::new(
            AtomicBuffer::allocate(capacity * METADATA_LENGTH),
            AtomicBuffer::allocate(capacity * VALUE_LENGTH),
            reuse_timeout_ms,
        );
        let reader = manager.reader();
        let mut now_ms = 1_000_000;
        let mut label_of_live = HashMap::new();
        let mut free_since = HashMap::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Wait { ms } => now_ms += ms,
                Step::Allocate => {
                    let rested = free_since.values().any(|since| now_ms - since >= reuse_timeout_ms);
                    let unused = label_of_live.len() + free_since.len() < capacity;
                    let label = format!("counter {number}");
                    match manager.allocate(number as i32, &[], &label, now_ms) {
                        Ok(id) => {
                            prop_assert!(!label_of_live.contains_key(&id), "id {id} was handed out twice");
                            match free_since.remove(&id) {
                                Some(since) => prop_assert!(now_ms - since >= reuse_timeout_ms),
                                None => prop_assert!(!rested, "a new id although one was rested"),
                            }
                            prop_assert_eq!(reader.value(id), Some(0));
                            manager.set_value(id, number as i64 + 1);
                            label_of_live.insert(id, label);
                        }
                        Err(error) => {
                            prop_assert_eq!(error, BufferError::NoFreeCounter { capacity });
                            prop_assert!(!rested && !unused);
                        }
                    }
                }
                Step::Free { id } => {
                    let live = label_of_live.remove(&id).is_some();
                    prop_assert_eq!(manager.free(id, now_ms), live);
                    if live {
                        free_since.insert(id, now_ms);
                    }
                }
            }
            let mut seen = HashMap::new();
            reader.for_each(|record| { seen.insert(record.id, record.label); });
            prop_assert_eq!(&seen, &label_of_live);
            for id in 0..capacity as i32 {
                let state = match (label_of_live.contains_key(&id), free_since.contains_key(&id)) {
                    (true, _) => STATE_ALLOCATED,
                    (false, true) => STATE_RECLAIMED,
                    (false, false) => STATE_UNUSED,
                };
                prop_assert_eq!(reader.state(id), Some(state));
            }
        }
    }

    #[test]
    fn any_label_stays_within_its_room(parts in prop::collection::vec(".{0,200}", 0..6)) {
        let mut manager = CountersManager::new(
            AtomicBuffer::allocate(2 * METADATA_LENGTH),
            AtomicBuffer::allocate(2 * VALUE_LENGTH),
            0,
        );
        let id = manager.allocate(1, &[], "", 0).unwrap();
        let mut expected = String::new();
        for part in &parts {
            prop_assert!(manager.append_to_label(id, part));
            expected.extend(part.chars().map(|letter| if letter.is_ascii() { letter } else { '?' }));
        }
        expected.truncate(380);
        prop_assert_eq!(manager.reader().label(id), Some(expected));
        prop_assert_eq!(manager.reader().state(id + 1), Some(STATE_UNUSED));
    }
}
