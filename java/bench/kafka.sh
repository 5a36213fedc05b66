#!/usr/bin/env bash
# Our stores of Kafka Streams beside the default ones, with one broker: java/bench/kafka.sh [--keys N,N..]
# [--restored N,N..] [--records N] [--rounds N] [--loads count,windowed,join] [--engines trommel,rocksdb]
# [--kafka oldest|newest]
# It listens on 127.0.0.1 alone. Restart, recovery and steady counts with N keys each; loads of RECORDS in turns.
# --restored: a changelog of N keys is written as such and restored, and a restart measured, alone: 30 million take 10
# minutes. --kafka newest: the default stores are transactional there. An empty text leaves a part out. One more engine:
# trommel-unlogged, ours with trommel.log=false.
# CARGO_TARGET_DIR: where everything is made. MAVEN: the command mvn. LIBRARY: the native library, if it is made.
set -euo pipefail
cd "$(dirname "$0")/../.."

keys=1000000,10000000 restored= records=1000000 rounds=2 loads=count,windowed,join kafka=oldest
engines=trommel,rocksdb
usage() {
    sed -n '2,4s/^# //p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage
    case $1 in
    --keys) keys=$2 ;;
    --restored) restored=$2 ;;
    --records) records=$2 ;;
    --rounds) rounds=$2 ;;
    --loads) loads=$2 ;;
    --engines) engines=$2 ;;
    --kafka) kafka=$2 ;;
    *) usage ;;
    esac
    shift 2
done
. scripts/kafka-build.sh

folder=$(mktemp -d "$out/comparison.XXXXXX")
java=
trap '[ -z "$java" ] || kill "$java" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
java -Xmx512m -Ddev.trommel.measured=true "-Ddev.trommel.library=$LIBRARY" -cp "$classpath" \
    dev.trommel.kafka.Comparison "folder=$folder" "keys=$keys" "restored=$restored" "records=$records" \
    "rounds=$rounds" "loads=$loads" "teller=$teller" "engines=$engines" &
java=$!
wait "$java"
