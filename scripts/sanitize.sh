#!/bin/sh
# Runs the store under the sanitizers, Miri and loom: what docs/testing.md, "Sanitizers", lists.
#   scripts/sanitize.sh [--seconds N] [address] [thread] [miri] [loom]      without names all; N seconds of stress, or 600
# Needs rustup (a nightly toolchain, rust-src and miri are added where they are missing), a C compiler and x86-64 Linux.
set -eu
cd "$(dirname "$0")/.."
triple=x86_64-unknown-linux-gnu
seconds=600
# The modules with `unsafe`, and those that stand on them. (crates/store/tests/tidy has the files.)
rooms="skiplist memtable interval_tree append_list fork_word life io_uring ring_queue read_pool aligned:: cache::"

usage() {
    sed -n '2,4s/^# *//p' "$0"
}

# A stress of the real disk, then tests: under $RUSTFLAGS, with more arguments of cargo.
under_a_sanitizer() {
    folder=$1
    shift
    cargo +nightly build --locked -p trommel-cli --target $triple --target-dir "$folder" "$@"
    "$folder/$triple/debug/trommel" stress --threads 4 --disk --seconds "$seconds"
    # shellcheck disable=SC2086
    cargo +nightly test --locked --profile dev -p trommel-filters -p trommel-guards -p trommel --lib --target $triple --target-dir "$folder" "$@" \
        -- bits::simd $rooms
}

address() {
    export RUSTFLAGS="-Zsanitizer=address"
    export ASAN_OPTIONS="detect_stack_use_after_return=1 ${ASAN_OPTIONS:-}"
    export LSAN_OPTIONS="suppressions=$PWD/scripts/sanitize-leaks.txt ${LSAN_OPTIONS:-}"
    under_a_sanitizer target/asan
}

# With a standard library that is compiled for it: its locks, threads and counts are seen.
thread() {
    mkdir -p target/tsan
    cc -O1 -Wall -Wextra -Werror -c scripts/sanitize-tsan.c -o target/tsan/fetch_sub.o
    export RUSTFLAGS="-Zsanitizer=thread -Clink-arg=$PWD/target/tsan/fetch_sub.o -Clink-arg=-Wl,--wrap=__tsan_atomic64_fetch_sub"
    export TSAN_OPTIONS="suppressions=$PWD/scripts/sanitize-tsan.txt print_suppressions=1 ${TSAN_OPTIONS:-}"
    under_a_sanitizer target/tsan -Zbuild-std
}

# Leaks are no error: a ring that has failed leaves its memory to the kernel, and threads of the pool stay. What is skipped is long, and
# all of it safe code.
miri() {
    export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks"
    export PROPTEST_CASES="${PROPTEST_CASES:-1}"
    checked() {
        cargo +nightly miri test --locked --target $triple --lib "$@"
    }
    checked -p trommel-filters --target-dir target/miri -- bits::simd
    RUSTFLAGS="-Ctarget-feature=+bmi1,+bmi2,+popcnt,+lzcnt,+movbe,+avx2" \
        checked -p trommel-filters --target-dir target/miri-v3 -- bits::simd
    checked -p trommel --target-dir target/miri -- skiplist memtable::tests memtable_tombstones::tests append_list fork_word \
        life::tests io_uring aligned::tests \
        --skip what_a_flush_writes
}

loom() {
    RUSTFLAGS="--cfg loom" cargo test --locked -p trommel --release --target-dir target/loom --lib loom_models
}

names=
while [ $# -gt 0 ]; do
    case $1 in
        --seconds) seconds=${2:?$(usage)} && shift ;;
        address | thread | miri | loom) names="$names $1" ;;
        --help) usage && exit ;;
        *) usage >&2 && exit 2 ;;
    esac
    shift
done
names=${names:-address thread miri loom}
if [ "$names" != " loom" ]; then
    rustup toolchain list | grep -q '^nightly' || rustup toolchain install nightly --profile minimal
    rustup component add rust-src miri --toolchain nightly
fi
for name in $names; do
    printf '\n== %s\n' "$name"
    (set -e; "$name")
done
printf '\nNothing was found by:%s\n' " $names"
