//! Chance from a seed.

/// FNV-1a over the bytes of a name, begun with a seed.
fn mix(seed: u64, name: &str) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let start = 0xcbf2_9ce4_8422_2325 ^ seed;
    name.bytes()
        .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// A generator for one purpose. What others draw, or whether there are others, does not change its numbers.
pub(crate) fn fork(seed: u64, name: &str) -> fastrand::Rng {
    fastrand::Rng::with_seed(mix(seed, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_and_each_seed_has_numbers_of_its_own() {
        let first = |seed, name| fork(seed, name).u64(..);
        assert_eq!(first(1, "left"), first(1, "left"));
        assert_ne!(first(1, "left"), first(1, "right"));
        assert_ne!(first(1, "left"), first(2, "left"));
    }
}
