#!/usr/bin/env bash
# Our stores of Kafka Streams beside the default ones, with one broker: java/bench/kafka.sh [--keys N,N..]
# [--records N] [--rounds N] [--loads count,windowed,join] [--engines trommel,rocksdb]
# [--kafka oldest|newest]
# It listens on 127.0.0.1 alone. Restart, recovery and steady counts with N keys each; loads of RECORDS in turns.
# CARGO_TARGET_DIR: where everything is made. MAVEN: the command mvn. LIBRARY: the native library, if it is made.
set -euo pipefail
cd "$(dirname "$0")/../.."

keys=1000000,10000000 records=1000000 rounds=2 loads=count,windowed,join kafka=oldest engines=trommel,rocksdb
usage() {
    sed -n '2,5s/^# //p' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage
    case $1 in
    --keys) keys=$2 ;;
    --records) records=$2 ;;
    --rounds) rounds=$2 ;;
    --loads) loads=$2 ;;
    --engines) engines=$2 ;;
    --kafka) kafka=$2 ;;
    *) usage ;;
    esac
    shift 2
done
case $kafka in
oldest) libraries=trommel-kafka-streams teller=hook ;;
newest) libraries=trommel-kafka-streams-newest teller=runtime ;;
*) usage ;;
esac

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/java} CARGO_INCREMENTAL=0
mkdir -p "$CARGO_TARGET_DIR"
CARGO_TARGET_DIR=$(cd "$CARGO_TARGET_DIR" && pwd)
out=$CARGO_TARGET_DIR/kafka
if [ -z "${LIBRARY:-}" ]; then
    cargo build --locked --quiet --release --manifest-path crates/jni/Cargo.toml
    for LIBRARY in "$CARGO_TARGET_DIR"/release/libtrommel_jni.{so,dylib}; do
        [ -f "$LIBRARY" ] && break
    done
fi
"${MAVEN:-mvn}" -q -B -f java/pom.xml -Pkafka-streams "-Dtrommel.build=$out/target" -DskipTests package

folder=$(mktemp -d "$out/comparison.XXXXXX")
java=
trap '[ -z "$java" ] || kill "$java" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
built=$out/target/trommel-kafka-streams
java -Xmx512m -Ddev.trommel.measured=true "-Ddev.trommel.library=$LIBRARY" \
    -cp "$built/classes:$built/test-classes:$out/target/$libraries/libraries/*" dev.trommel.kafka.Comparison \
    "folder=$folder" "keys=$keys" "records=$records" "rounds=$rounds" "loads=$loads" "teller=$teller" \
    "engines=$engines" &
java=$!
wait "$java"
