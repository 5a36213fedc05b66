#!/bin/sh
# Builds the C library and installs it: headers, shared and static library, files for pkg-config and CMake, man page.
#   scripts/install-c.sh PREFIX            built for use
#   scripts/install-c.sh PREFIX debug      as scripts/test-c.sh has built it
# DESTDIR is put before PREFIX, if it is set. Needs Linux, Rust and a C compiler.
set -eu
case ${1:-} in
/*) prefix=$1 ;;
?*) prefix=$PWD/$1 ;;
*)
    sed -n '2,5s/^# *//p' "$0" >&2
    exit 2
    ;;
esac
case ${2:-release} in
release) profile=--release folder=release ;;
debug) profile='' folder=debug ;;
*)
    echo "$2: there are release and debug" >&2
    exit 2
    ;;
esac
[ "$(uname -s)" = Linux ] || {
    echo 'libraries for other systems than Linux: cargo build --release --manifest-path crates/c/Cargo.toml' >&2
    exit 2
}
cd "$(dirname "$0")/../crates/c"
# shellcheck disable=SC2086
cargo build --locked $profile
built=${CARGO_TARGET_DIR:-target}/$folder
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
name=libtrommel.so.${version%.*}
to=${DESTDIR:-}$prefix

mkdir -p "$to/include" "$to/lib/pkgconfig" "$to/lib/cmake/trommel" "$to/share/man/man3"
./link.sh "$built/libtrommel.a" "$to/lib/libtrommel.so.$version"
ln -sf "libtrommel.so.$version" "$to/lib/$name"
ln -sf "$name" "$to/lib/libtrommel.so"
cp "$built/libtrommel.a" "$to/lib/"
cp include/trommel.h include/trommel.hpp "$to/include/"
cp man/trommel.3 "$to/share/man/man3/"
for file in trommel.pc:pkgconfig trommelConfig.cmake:cmake/trommel trommelConfigVersion.cmake:cmake/trommel; do
    sed "s/@VERSION@/$version/g; s/@SONAME@/$name/g" "install/${file%:*}.in" >"$to/lib/${file#*:}/${file%:*}"
done
echo "trommel $version is in $to"
