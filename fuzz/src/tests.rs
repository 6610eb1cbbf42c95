//! Every target over its seeds and over damage done to them, repeatable from a number.

use crate::{TARGETS, Target};

/// Inputs made from each seed. A few seconds in all; the fuzzer is there to go on for longer.
const MUTATIONS_PER_SEED: usize = 300;

/// Changes an input the way bad peers and bad memory do.
fn mutate(input: &mut Vec<u8>, random: &mut fastrand::Rng) {
    const EDGES: [i32; 8] = [0, 1, -1, i32::MIN, i32::MAX, 32, 31, 65536];
    for _ in 0..random.usize(1..5) {
        if input.is_empty() {
            input.push(random.u8(..));
        }
        let at = random.usize(..input.len());
        match random.u8(..6) {
            0 => input[at] ^= 1 << random.u8(..8),
            1 => input[at] = random.u8(..),
            2 => input.truncate(at),
            3 => input.insert(at, random.u8(..)),
            4 => {
                let length = random.usize(..64);
                input.extend(std::iter::repeat_with(|| random.u8(..)).take(length));
            }
            _ => {
                let edge = EDGES[random.usize(..EDGES.len())].to_le_bytes();
                let end = input.len().min(at + edge.len());
                input[at..end].copy_from_slice(&edge[..end - at]);
            }
        }
    }
}

/// Runs a target over seeds, their prefixes and their mutations. `seed` names the run.
fn exercise(target: &Target, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{} has no seeds", target.name);
    (target.run)(&[]);
    for input in &seeds {
        (target.run)(input);
        for length in 0..input.len().min(256) {
            (target.run)(&input[..length]);
        }
        for _ in 0..MUTATIONS_PER_SEED {
            let mut mutated = input.clone();
            mutate(&mut mutated, &mut random);
            (target.run)(&mutated);
        }
    }
}

fn named(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).expect(name)
}

#[test]
fn packets() {
    exercise(named("packets"), 1);
}

#[test]
fn commands() {
    exercise(named("commands"), 2);
}

#[test]
fn events() {
    exercise(named("events"), 3);
}

#[test]
fn channel_uri() {
    exercise(named("channel_uri"), 4);
}

#[test]
fn event_log() {
    exercise(named("event_log"), 7);
}

#[test]
fn cnc_file() {
    exercise(named("cnc_file"), 5);
}

#[test]
fn log_file() {
    exercise(named("log_file"), 6);
}

#[test]
fn every_target_has_a_binary() {
    let manifest = include_str!("../Cargo.toml");
    for target in TARGETS {
        assert!(
            manifest.contains(&format!("name = \"{}\"", target.name)),
            "{}",
            target.name
        );
    }
    assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
}

/// A checker that cannot fail is no checker: a planted fault must be found.
#[test]
#[should_panic(expected = "planted")]
fn a_planted_fault_is_found() {
    fn run(input: &[u8]) {
        assert!(
            !(input.len() == 8 && input[4..] == i32::MIN.to_le_bytes()),
            "planted"
        );
    }
    let target = Target {
        name: "planted",
        run,
        seeds: || vec![vec![1; 8]; 100],
    };
    exercise(&target, 7);
}
