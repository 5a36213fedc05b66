#!/bin/sh
# Runs tests of filters and store for other machines: big-endian Linux under qemu-user, 32-bit Linux, Windows under Wine.
#   scripts/check-platforms.sh [s390x] [i686] [windows]      without names all three
# Needs x86-64 Linux, rustup, and (Debian) apt-get install qemu-user gcc-s390x-linux-gnu gcc-i686-linux-gnu wine gcc-mingw-w64-x86-64.
# What these do not show:
#   qemu-user  hands system calls to the host's kernel, so files, syncs and direct I/O are the host's. Time and threads are not those of
#              a real machine: stress, schedules and limits of memory are left out.
#   i686       runs on the processor itself: qemu-i386 7.2 hangs in the test harness.
#   Wine       keeps removed files until their last handle is closed, and replaces no open file; Windows 10 does both.
#   macOS      is compiled for by .ci/run, and run by nothing here.
set -eu
cd "$(dirname "$0")/.."

usage() {
    sed -n '2,10s/^# *//p' "$0"
}

need() {
    command -v "$1" >/dev/null 2>&1 || {
        echo "$1 is missing: see $0 --help" >&2
        exit 2
    }
}

# Tests on one machine: bytes of filters and of stores; then the parts that depend on words, byte order and the system's calls. What
# follows the target is for the harness of the store's own tests.
check() {
    target=$1
    shift
    rustup target add "$target"
    tested() {
        printf '\n== %s: %s\n' "$target" "$*"
        PROPTEST_CASES="${PROPTEST_CASES:-8}" cargo test --locked --target "$target" "$@"
    }
    tested -p trommel-guards --test golden
    tested -p trommel --test golden_folder --test working_directory
    tested -p trommel --test crashes -- checkpoint::
    tested -p trommel --lib -- storage:: files:: entries:: "$@"
    tested -p trommel-filters --lib --test grf_image
}

s390x() {
    need s390x-linux-gnu-gcc
    need qemu-s390x
    export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc
    export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER="qemu-s390x -L /usr/s390x-linux-gnu"
    check s390x-unknown-linux-gnu
}

i686() {
    need i686-linux-gnu-gcc
    export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER=i686-linux-gnu-gcc
    export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_RUNNER="/usr/i686-linux-gnu/lib/ld-linux.so.2 --library-path /usr/i686-linux-gnu/lib"
    check i686-unknown-linux-gnu
}

windows() {
    need x86_64-w64-mingw32-gcc
    need wine
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine
    export WINEDEBUG=-all
    # Wine 8 lacks the library that std takes random numbers from.
    mkdir -p target/wine
    cat > target/wine/random.c <<'END'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID bytes, ULONG len);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T len) { return SystemFunction036(bytes, (ULONG)len); }
END
    x86_64-w64-mingw32-gcc -shared -o target/wine/bcryptprimitives.dll target/wine/random.c -ladvapi32
    WINEPATH="Z:$(pwd)/target/wine"
    export WINEPATH
    check x86_64-pc-windows-gnu --skip the_disk_behaves_like_a_disk
}

names=
for name in "$@"; do
    case $name in
        s390x | i686 | windows) names="$names $name" ;;
        --help) usage && exit ;;
        *) usage >&2 && exit 2 ;;
    esac
done
names=${names:-s390x i686 windows}
for name in $names; do
    (set -e; "$name")
done
printf '\nAll tests passed on:%s\n' " $names"
