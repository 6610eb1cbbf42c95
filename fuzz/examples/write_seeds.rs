//! Writes the seeds of each target to `<directory>/<target>/`, where a fuzzer looks for its corpus.

use std::io;
use std::path::PathBuf;

use headrace_fuzz::TARGETS;

fn main() -> io::Result<()> {
    let directory = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("fuzz/corpus"), PathBuf::from);
    for target in TARGETS {
        let corpus = directory.join(target.name);
        std::fs::create_dir_all(&corpus)?;
        for (index, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(corpus.join(format!("seed-{index:02}")), seed)?;
        }
    }
    Ok(())
}
