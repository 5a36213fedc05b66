#!/usr/bin/env bash
# Tests the C library (crates/c) and its C++ wrapper: symbols, headers, all functions, sanitizers, what is installed.
#   scripts/test-c.sh            all of it
#   scripts/test-c.sh header     writes crates/c/include/trommel.h anew, from the comments in crates/c/src
# Needs Linux, Rust, and a compiler for C11 and C++17 (Debian: apt-get install g++ binutils). clang, valgrind, pkg-config, cmake, groff
# and mandoc (packages of these names) are used where they are there, and named where not. It installs none of them.
set -euo pipefail
cd "$(dirname "$0")/.."
crate=$PWD/crates/c
manifest=$crate/Cargo.toml
target=${CARGO_TARGET_DIR:-$crate/target}
out=$target/c-tests
# A panic tells its place without it.
export CARGO_PROFILE_DEV_DEBUG=${CARGO_PROFILE_DEV_DEBUG:-0} CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}

if [ "${1:-}" = header ]; then
    TROMMEL_WRITE_HEADER=1 cargo test --locked --manifest-path "$manifest" --test header
    exit
elif [ $# -gt 0 ]; then
    sed -n '2,6s/^# *//p' "$0" >&2
    exit 2
fi

step() {
    printf '\n== %s (%d s so far)\n' "$*" "$SECONDS"
}

die() {
    printf '%s\n' "$*" >&2
    exit 1
}

lacks=()
has() {
    command -v "$1" >/dev/null 2>&1 && return
    lacks+=("$1: $2")
    return 1
}

for tool in cc c++ nm readelf; do
    command -v "$tool" >/dev/null 2>&1 || die "$tool is missing: apt-get install g++ binutils"
done

step cargo test
cargo test --locked --manifest-path "$manifest"
cargo build --locked --manifest-path "$manifest"
archive=$target/debug/libtrommel.a
native=(-lgcc_s -lutil -lrt -lpthread -lm -ldl)

rm -rf "$out"
mkdir -p "$out/lib"
step shared library, with versions of its symbols
"$crate/link.sh" "$archive" "$out/lib/libtrommel.so.0.2"
ln -s libtrommel.so.0.2 "$out/lib/libtrommel.so"

step exported symbols
# What the header declares: each begins a line, or follows its type.
grep -oE '\btrommel_[a-z_]+\(' "$crate/include/trommel.h" | tr -d '(' | sort -u >"$out/declared"
[ "$(wc -l <"$out/declared")" -gt 100 ] || die "the header declares too little: $(wc -l <"$out/declared")"
sed 's/$/@@TROMMEL_0.2/' "$out/declared" >"$out/expected"
nm -D --defined-only --with-symbol-versions "$out/lib/libtrommel.so.0.2" | awk '$2 != "A" {print $3}' | sort >"$out/exported"
diff "$out/expected" "$out/exported" || die 'the shared library does not export what the header declares (<), or more (>)'
nm -D --defined-only "$target/debug/libtrommel.so" | awk '{print $3}' | sort >"$out/exported"
diff "$out/declared" "$out/exported" || die "cargo's library does not export what the header declares (<), or more (>)"
for library in "$out/lib/libtrommel.so.0.2" "$target/debug/libtrommel.so"; do
    readelf -d "$library" | grep -q 'soname: \[libtrommel.so.0.2\]' || die "$library has another soname"
done

step every function is called from C, and from the wrapper
cat "$crate"/tests/c/*.c >"$out/c-calls"
while read -r name; do
    grep -q "\b$name(" "$out/c-calls" || die "no test in C calls $name"
    # The two that a wrapper has no use for: rows alone, a forced panic.
    case $name in trommel_scan_row | trommel_test_panic) continue ;; esac
    grep -qE "\b$name\b" "$crate/include/trommel.hpp" || die "trommel.hpp does not use $name"
done <"$out/declared"

strict=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror -I"$crate/include")
c=(-std=c11 -D_POSIX_C_SOURCE=200809L "${strict[@]}" -Wstrict-prototypes)
cpp=(-std=c++17 "${strict[@]}")
grep -oE '^\.Fn trommel_[a-z_]+' "$crate/man/trommel.3" | cut -c5- | sort -u | diff "$out/declared" - ||
    die 'the man page lists something else than the header declares'

step compilers
echo '#include "trommel.h"' >"$out/header.c"
echo '#include "trommel.hpp"' >"$out/header.cpp"
shared=(-L"$out/lib" -Wl,-rpath,"$out/lib" -ltrommel -lpthread)
sanitize=(-g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
in_c() {
    cc "${c[@]}" -std=c99 -fsyntax-only "$out/header.c"
    cc "${c[@]}" -g "$crate"/tests/c/*.c -o "$out/surface" "${shared[@]}"
    cc "${c[@]}" "${sanitize[@]}" "$crate"/tests/c/*.c -o "$out/surface-sanitized" "$archive" "${native[@]}"
    c++ "${cpp[@]}" -std=c++11 -x c++ -fsyntax-only "$out/header.c"
    c++ "${cpp[@]}" -std=c++20 -fsyntax-only "$out/header.cpp"
    c++ "${cpp[@]}" -g "$crate/tests/wrapper.cpp" -o "$out/wrapper" "${shared[@]}"
}
with_clang() {
    clang "${c[@]}" -std=c99 -fsyntax-only "$out/header.c"
    clang "${c[@]}" -fsyntax-only "$crate"/tests/c/*.c
    clang++ "${cpp[@]}" -fsyntax-only "$crate/tests/wrapper.cpp"
}
(set -e && in_c) &
if has clang 'a second compiler' && has clang++ 'a second compiler'; then
    with_clang
fi
c++ "${cpp[@]}" "${sanitize[@]}" "$crate/tests/wrapper.cpp" -o "$out/wrapper-sanitized" "$archive" "${native[@]}"
wait $!

# Runs a test program in a new folder, after the words that are before it.
run() {
    local folder status=0
    folder=$(mktemp -d "$out/store.XXXXXX")
    "$@" "$folder" || status=$?
    rm -rf "$folder"
    return "$status"
}

step the test programs
run "$out/surface" 2>"$out/surface.log" || { cat "$out/surface.log"; exit 1; }
run "$out/wrapper"
step the same under AddressSanitizer and UndefinedBehaviorSanitizer
run "$out/surface-sanitized" 2>"$out/sanitized.log" || { cat "$out/sanitized.log"; exit 1; }
run "$out/wrapper-sanitized"
if has valgrind 'the test programs under memcheck'; then
    step the same under valgrind
    memcheck=(valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect
        --show-leak-kinds=definite,indirect --child-silent-after-fork=yes)
    run "${memcheck[@]}" "$out/wrapper" >"$out/valgrind-wrapper.log" 2>&1 &
    run "${memcheck[@]}" "$out/surface" >"$out/valgrind.log" 2>&1 || { cat "$out/valgrind.log"; exit 1; }
    wait $! || { cat "$out/valgrind-wrapper.log"; exit 1; }
    tail -n 1 "$out/valgrind.log" "$out/valgrind-wrapper.log"
fi

step the quick start of the README
# The code between ```LANGUAGE and ```.
block() {
    awk -v fence="\`\`\`$1" '$0 == fence {on = 1; next} /^```$/ {on = 0} on' "$crate/README.md"
}
block c >"$out/quick.c"
block cpp >"$out/quick.cpp"
[ -s "$out/quick.c" ] && [ -s "$out/quick.cpp" ] || die 'README.md has no quick start'
cc "${c[@]}" "$out/quick.c" -o "$out/quick-c" "${shared[@]}"
c++ "${cpp[@]}" "$out/quick.cpp" -o "$out/quick-cpp" "${shared[@]}"
for quick in quick-c quick-cpp; do
    (mkdir "$out/$quick.d" && cd "$out/$quick.d" && "$out/$quick" >"$out/$quick.txt")
    diff <(block text) "$out/$quick.txt" || die "$quick prints something else than README.md says"
done

step man page
if has mandoc "a second look at the man page's form"; then
    mandoc -T lint -W warning "$crate/man/trommel.3"
fi
if has groff "the man page's form"; then
    groff -mdoc -z -W break -w mac -w missing -w reg -w syntax "$crate/man/trommel.3" 2>"$out/man.log"
    [ ! -s "$out/man.log" ] || die "$(cat "$out/man.log")"
fi

step what is installed
scripts/install-c.sh "$out/prefix" debug
if has pkg-config 'the installed pkg-config file'; then
    export PKG_CONFIG_PATH=$out/prefix/lib/pkgconfig
    [ "$(pkg-config --modversion trommel)" = 0.2.0 ] || die 'pkg-config tells another version'
    # shellcheck disable=SC2046
    cc -std=c11 "$out/quick.c" -o "$out/installed" $(pkg-config --cflags --libs trommel) -Wl,-rpath,"$out/prefix/lib"
    # shellcheck disable=SC2046
    cc -std=c11 "$out/quick.c" -o "$out/installed-static" $(pkg-config --cflags trommel) "$out/prefix/lib/libtrommel.a" \
        $(pkg-config --static --libs-only-l trommel | sed 's/-ltrommel//')
    for installed in installed installed-static; do
        (mkdir "$out/$installed.d" && cd "$out/$installed.d" && "$out/$installed" | diff <(block text) -)
    done
fi
if has cmake 'the CMake example'; then
    cmake -S "$crate/examples/cmake" -B "$out/cmake" -DCMAKE_PREFIX_PATH="$out/prefix" >"$out/cmake.log" || { cat "$out/cmake.log"; exit 1; }
    cmake --build "$out/cmake" >>"$out/cmake.log" || { cat "$out/cmake.log"; exit 1; }
    for program in words words-static words-cpp; do
        (mkdir "$out/$program.d" && cd "$out/$program.d" && "$out/cmake/$program" >"$out/$program.txt")
        grep -q '2 words' "$out/$program.txt" || die "the CMake example $program prints: $(cat "$out/$program.txt")"
    done
fi

for lack in "${lacks[@]}"; do
    printf 'not there, so not tested: %s\n' "$lack"
done
printf '\nAll tests of the C library passed, in %d s.\n' "$SECONDS"
