//! Bytes written the way the protocol's documents print them.

/// Bytes of a hexadecimal string; spaces are for the reader.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .map(|byte| char::from(byte).to_digit(16).expect("a hexadecimal digit") as u8)
        .collect();
    assert_eq!(digits.len() % 2, 0, "whole bytes");
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
