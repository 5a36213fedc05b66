#!/usr/bin/env bash
# Builds the native libraries of the Java package, and puts them where its jar takes them from.
#   scripts/build-java-natives.sh              for this machine, with a C library as old as can be
#   scripts/build-java-natives.sh TARGET...    for others: x86_64-unknown-linux-gnu, x86_64-unknown-linux-musl,
#                                              aarch64-unknown-linux-gnu, x86_64-pc-windows-gnu, aarch64-apple-darwin, ...
# Then `mvn -f java/pom.xml package` makes a jar with all of them. Needs Rust by rustup, and Python; zig, which links for
# old and for other systems, is a Python package. Frameworks of macOS are Apple's: SDKROOT names them.
set -euo pipefail
cd "$(dirname "$0")/.."

# The oldest that Rust's standard library runs on.
glibc=2.17
natives=java/trommel-java/src/main/resources/dev/trommel/native
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/java-natives

environment=$CARGO_TARGET_DIR/venv
[ -x "$environment/bin/python" ] || "${PYTHON:-python3}" -m venv "$environment"
"$environment/bin/python" -m pip --quiet --disable-pip-version-check install \
    'cargo-zigbuild>=0.20' 'ziglang>=0.13,<0.16'
export PATH=$environment/bin:$PATH

# The library of one target.
native() {
    local target=$1 versioned=$1 machine=${1%%-*} folder library flags=${RUSTFLAGS:-}
    rustup target add "$target"
    case $target in
    *-linux-gnu*) folder=linux-$machine library=libtrommel_jni.so versioned=$target.$glibc ;;
    # Rust links musl into each file, unless it is told otherwise; a library has none of its own.
    *-linux-musl*) folder=linux-$machine-musl library=libtrommel_jni.so flags="$flags -C target-feature=-crt-static" ;;
    *-apple-darwin) folder=macos-$machine library=libtrommel_jni.dylib ;;
    *-windows-*) folder=windows-$machine library=trommel_jni.dll ;;
    *)
        printf 'build-java-natives: no jar looks for a library of %s\n' "$target" >&2
        return 1
        ;;
    esac
    RUSTFLAGS=$flags CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_STRIP=symbols cargo zigbuild --locked --release --target "$versioned" \
        --manifest-path crates/jni/Cargo.toml
    mkdir -p "$natives/$folder"
    cp "$CARGO_TARGET_DIR/$target/release/$library" "$natives/$folder/"
}

[ $# -gt 0 ] || set -- "$(rustc -vV | sed -n 's/^host: //p')"
for target in "$@"; do
    native "$target"
done
ls -l "$natives"/*
