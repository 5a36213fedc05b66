#!/bin/sh
# Links the shared library from the static one, with versions of its symbols:
#   crates/c/link.sh ARCHIVE OUTPUT
# Cargo's own shared library has the same functions, without versions (build.rs says why).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 2 ] || {
    sed -n '2,4s/^# *//p' "$0" >&2
    exit 2
}
exec "${CC:-cc}" -shared -o "$2" \
    -Wl,-soname,libtrommel.so.0.2 -Wl,--version-script="$here/trommel.map" \
    -Wl,--whole-archive "$1" -Wl,--no-whole-archive \
    -Wl,--gc-sections -Wl,--strip-debug -Wl,--as-needed -Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,--no-undefined \
    -lgcc_s -lpthread -lm -ldl -lc
