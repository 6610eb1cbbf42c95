#!/usr/bin/env bash
# Fuzzes every target for SECONDS_EACH (default 30): scripts/fuzz.sh [SECONDS_EACH] [target...]
#
# With cargo-fuzz and a nightly toolchain each target also runs under the address sanitizer. Without them the
# same binaries are built with the stable toolchain, guided by coverage but without a sanitizer: the crates under
# test hold their unsafe code in two places, and a bounds check that fails panics.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-30}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for file in fuzz/fuzz_targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi

corpus=fuzz/corpus
cargo run --quiet --manifest-path fuzz/Cargo.toml --no-default-features --example write_seeds -- "$corpus"

# The corpus as it is at the end of a run is kept; an input that fails is left in fuzz/artifacts.
options=(-max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -verbosity=0)

if cargo fuzz --version >/dev/null 2>&1 && cargo +nightly --version >/dev/null 2>&1; then
    for target in "${targets[@]}"; do
        echo "fuzz: $target for ${seconds}s, with the address sanitizer"
        cargo +nightly fuzz run "$target" -- "${options[@]}"
    done
    exit
fi

host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
-Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares" \
    cargo build --quiet --release --bins --manifest-path fuzz/Cargo.toml --target "$host"
for target in "${targets[@]}"; do
    echo "fuzz: $target for ${seconds}s, without a sanitizer"
    mkdir -p "fuzz/artifacts/$target"
    log=fuzz/artifacts/$target.log
    if ! "fuzz/target/$host/release/$target" "$corpus/$target" -artifact_prefix="fuzz/artifacts/$target/" \
        "${options[@]}" >"$log" 2>&1; then
        cat "$log"
        echo "fuzz: $target failed; replay with fuzz/target/$host/release/$target <file in fuzz/artifacts/$target>"
        exit 1
    fi
done
echo "fuzz: nothing found in ${#targets[@]} targets"
