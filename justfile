# What people do daily. `just` lists it; each recipe is the command that the documents name.

# Lists the recipes.
default:
    @just --list --unsorted

# All tests.
test *arguments:
    cargo test --workspace {{arguments}}

# Formatter and linter.
lint:
    cargo fmt --all --check
    cargo clippy --locked --workspace --all-targets -- -D warnings

# The documents of the code.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

# The generated documents: docs/cli.md, docs/results.md, docs/figures.
docs:
    cargo run --release -- help-markdown > docs/cli.md
    cargo run --release -- lab report --machine amd-epyc-2-cores --scale full --markdown docs/results.md

# All guards on real keys, in two minutes.
demo:
    cargo run --release -- demo

# Reads of a tree, by guard: docs/benchmarks.md.
bench *arguments="--guard none,blocked-bloom,grf":
    cargo run --release -- bench read {{arguments}}

# All experiments at small scale, then a page of them.
lab:
    cargo run --release -- lab run --report report.html

# Simulated histories with crashes and faults: docs/testing.md.
stress seeds="500":
    cargo run --release -- stress --seeds {{seeds}} --steps 6000

# Processes that are killed while they write.
kills count="100":
    cargo run --release -- stress --kills {{count}}

# Threads on the real disk.
threads seconds="60":
    cargo run --release -- stress --threads 2 --disk --seconds {{seconds}}

# One fuzz target for three minutes (nightly).
fuzz target="table":
    cargo +nightly fuzz run -s none {{target}} -- -max_total_time=180 -malloc_limit_mb=64 -timeout=10 -len_control=0

# Sanitizers, Miri and loom (nightly).
sanitize *arguments:
    scripts/sanitize.sh {{arguments}}

# Instructions of the filters beside their limits.
instructions:
    .ci/instructions

# Packages, their API beside that of the last version, licences and advisories.
packages *arguments:
    scripts/check-packages.sh {{arguments}}

# Everything that a merge needs.
gate:
    .ci/run
