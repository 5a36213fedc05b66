#!/usr/bin/env bash
# Three brokers and three instances of Kafka Streams on our stores, struck at random for minutes; then all outputs are
# compared with the truth: scripts/torture-kafka.sh [--minutes N] [--seed S] [--rate RECORDS] [--kafka oldest|newest]
# Brokers and instances are killed, instances halted until others take over, and, for root on Linux, disks filled.
# It listens on 127.0.0.1 alone, and takes 3 GB of memory and some GB of disk. If something goes wrong, its folder stays.
# CARGO_TARGET_DIR: where everything is made. MAVEN: the command mvn. LIBRARY: the native library, if it is made. KEEP=1:
# the folder stays in any case.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=10 seed=$RANDOM rate=300 kafka=oldest
usage() {
    sed -n '2,3s/^# //p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage
    case $1 in
    --minutes) minutes=$2 ;;
    --seed) seed=$2 ;;
    --rate) rate=$2 ;;
    --kafka) kafka=$2 ;;
    *) usage ;;
    esac
    shift 2
done
. scripts/kafka-build.sh

folder=$(mktemp -d "$out/torture.XXXXXX")
java=
passed=no
finish() {
    [ -z "$java" ] || kill "$java" 2>/dev/null || true
    [ -z "$java" ] || wait "$java" 2>/dev/null || true
    # Should it have been killed itself, what it started is alive.
    local pid state
    if [ -f "$folder/pids" ]; then
        while read -r pid; do
            grep -qsF "$folder" "/proc/$pid/cmdline" && kill -KILL "$pid" 2>/dev/null || true
        done <"$folder/pids"
    fi
    for state in a b c; do
        ! mountpoint -q "$folder/state-$state" 2>/dev/null || umount -l "$folder/state-$state"
    done
    if [ $passed = yes ] && [ -z "${KEEP:-}" ]; then
        rm -rf "$folder"
    elif [ $passed = no ]; then
        printf 'torture-kafka: it went wrong with --seed %s; all that was said is in %s\n' "$seed" "$folder" >&2
    fi
}
trap finish EXIT
trap 'exit 1' INT TERM

# The state of each instance on a small file system of its own, which can be filled.
disks=yes
for state in a b c; do
    mkdir "$folder/state-$state"
    if [ "$(id -u)" != 0 ] || ! mount -t tmpfs -o size=512m trommel "$folder/state-$state" 2>/dev/null; then
        disks=no
    fi
done
[ $disks = yes ] || echo 'Disks are not filled: that takes root, who may mount.'

echo "Seed $seed, $minutes minutes, $rate records a second, Kafka as $kafka as is supported."
java -Xmx1g "-Ddev.trommel.library=$LIBRARY" -cp "$classpath" dev.trommel.kafka.Torture \
    "folder=$folder" "minutes=$minutes" "seed=$seed" "rate=$rate" "teller=$teller" "disks=$disks" &
java=$!
if wait "$java"; then
    passed=yes
    printf 'Torture passed, in %d s.\n' "$SECONDS"
    exit 0
fi
java=
exit 1
