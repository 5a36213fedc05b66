#!/usr/bin/env bash
# Builds wheels of the Python package, each with the command `trommel` in it.
#   scripts/build-wheels.sh                    for this machine, with a C library as old as can be
#   scripts/build-wheels.sh TARGET...          for others: aarch64-unknown-linux-gnu, x86_64-unknown-linux-musl,
#                                              x86_64-pc-windows-gnu, aarch64-apple-darwin, ...
#   scripts/build-wheels.sh TARGET@3.14t       for that Python alone, which has no lock of its interpreter, and no stable
#                                              interface; @3.14t is for this machine. Other wheels serve all from 3.11 on
#   scripts/build-wheels.sh sdist              the package of sources, which cargo alone can build, and is built here
# They are left in target/wheels. Needs Rust by rustup, and Python; zig, which links for old and for other systems, is a
# Python package. Frameworks of macOS are Apple's: SDKROOT names them, there or on a machine that has them.
set -euo pipefail
cd "$(dirname "$0")/.."

# manylinux2014: glibc 2.17, the oldest that Rust's standard library runs on.
glibc=2.17
manifest=crates/python/Cargo.toml
scripts=crates/python/trommel._trommel.data/scripts
target_folder=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target_folder/wheel-builds
# Names and lines of functions are nine tenths of the command.
export CARGO_PROFILE_RELEASE_DEBUG=none CARGO_PROFILE_RELEASE_STRIP=symbols
wheels=$target_folder/wheels
mkdir -p "$wheels"

environment=$CARGO_TARGET_DIR/venv
[ -x "$environment/bin/python" ] || "${PYTHON:-python3}" -m venv "$environment"
"$environment/bin/python" -m pip --quiet --disable-pip-version-check install \
    'maturin>=1.9,<2' 'cargo-zigbuild>=0.20' 'ziglang>=0.13,<0.16'
export PATH=$environment/bin:$PATH

trap 'rm -rf "$scripts"' EXIT

# The command and the module, of one target: of all Pythons with the stable interface, or of one that is named.
wheel() {
    local target=$1 versioned=$1 program=trommel compatibility
    local interpreter=(${2:+--interpreter "python$2"})
    rustup target add "$target"
    case $target in
    *-linux-gnu*) versioned=$target.$glibc compatibility=manylinux2014 ;;
    *-linux-musl*) compatibility=musllinux_1_2 ;;
    *-windows-*) program=trommel.exe compatibility=off ;;
    *) compatibility=off ;;
    esac
    cargo zigbuild --locked --release -p trommel-cli --target "$versioned"
    rm -rf "$scripts"
    mkdir -p "$scripts"
    cp "$CARGO_TARGET_DIR/$target/release/$program" "$scripts"
    maturin build --locked --release --zig --target "$target" --compatibility "$compatibility" \
        ${interpreter[@]+"${interpreter[@]}"} --manifest-path "$manifest" --out "$wheels"
}

# The package of sources, built as pip builds it, and asked for a key.
sources() {
    rm -f "$wheels"/trommel-*.tar.gz
    maturin sdist --manifest-path "$manifest" --out "$wheels"
    rm -rf "$CARGO_TARGET_DIR/from-sources"
    python -m venv "$CARGO_TARGET_DIR/from-sources"
    local python=$CARGO_TARGET_DIR/from-sources/bin/python
    MATURIN_PEP517_ARGS=--locked "$python" -m pip --quiet --disable-pip-version-check install "$wheels"/trommel-*.tar.gz
    (cd / && "$python" -c 'import tempfile, trommel
with trommel.open(tempfile.mkdtemp()) as store:
    store.put(b"drum", b"turns")
    assert store.get(b"drum") == b"turns"')
    printf 'built from sources, it puts and gets\n'
}

host=$(rustc -vV | sed -n 's/^host: //p')
[ $# -gt 0 ] || set -- "$host"
for target in "$@"; do
    case $target in
    sdist) sources ;;
    @*) wheel "$host" "${target#@}" ;;
    *@*) wheel "${target%@*}" "${target#*@}" ;;
    *) wheel "$target" ;;
    esac
done
ls -l "$wheels"
