#!/bin/sh
# Runs tests of filters and store on machines that are not at hand: big-endian and 32-bit Linux under qemu-user, Windows under Wine.
#   scripts/check-platforms.sh [s390x] [i686] [windows]      without names all three
# Needs rustup, and (Debian) apt-get install qemu-user gcc-s390x-linux-gnu gcc-i686-linux-gnu wine gcc-mingw-w64-x86-64.
# What these do not show:
#   qemu-user  runs system calls of the host's kernel, 64-bit and little-endian: direct I/O and syncs are its own. The number of threads
#              and the time are not those of a real machine, so stress, schedules and limits of memory are left out.
#   Wine       has no POSIX renames: what replaces an open file fails there, and not on Windows 10. Syncs reach the host's disk, not NTFS.
#   macOS      is compiled by .ci/run, and run by nothing here.
set -eu
cd "$(dirname "$0")/.."

usage() {
    sed -n '2,9s/^# *//p' "$0"
}

need() {
    command -v "$1" >/dev/null 2>&1 || {
        echo "$1 is missing: see $0 --help" >&2
        exit 2
    }
}

# Tests on one machine: bytes of filters and of stores; then the parts that depend on words, byte order and the system's calls.
check() {
    target=$1
    rustup target add "$target"
    tested() {
        printf '\n== %s: %s\n' "$target" "$*"
        PROPTEST_CASES="${PROPTEST_CASES:-8}" cargo test --locked --target "$target" "$@"
    }
    tested -p trommel-guards --test golden
    tested -p trommel --test golden_folder --test working_directory --test checkpoint
    tested -p trommel --lib -- storage:: files:: entries::
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
    need qemu-i386
    export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER=i686-linux-gnu-gcc
    export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_RUNNER="qemu-i386 -L /usr/i686-linux-gnu"
    check i686-unknown-linux-gnu
}

windows() {
    need x86_64-w64-mingw32-gcc
    need wine
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine
    export WINEDEBUG=-all
    check x86_64-pc-windows-gnu
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
