#!/usr/bin/env bash
# Tests the stores of Kafka Streams: scripts/test-kafka.sh [Maven's arguments]
# First without a broker, on the oldest version of Kafka that is supported and on the newest. Then with one broker for
# each, that listens on 127.0.0.1 alone: instances of an application are killed, and outputs compared with the truth.
# CARGO_TARGET_DIR: where everything is made. MAVEN: the command mvn. STORIES=0: without brokers.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/java} CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
mkdir -p "$CARGO_TARGET_DIR"
CARGO_TARGET_DIR=$(cd "$CARGO_TARGET_DIR" && pwd)
out=$CARGO_TARGET_DIR/kafka
maven=${MAVEN:-mvn}

step() {
    printf '\n== %s (%d s so far)\n' "$*" "$SECONDS"
    "$@"
}

die() {
    printf 'test-kafka: %s\n' "$*" >&2
    exit 1
}

if ! command -v javac >/dev/null || ! command -v "$maven" >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        step apt-get update -q
        DEBIAN_FRONTEND=noninteractive step apt-get install -q -y --no-install-recommends default-jdk-headless maven
    else
        die 'install a JDK from 17 on and Maven: on Debian default-jdk-headless and maven'
    fi
fi

step cargo build --locked --quiet --manifest-path crates/jni/Cargo.toml
case $(uname -s) in
Linux) library=libtrommel_jni.so ;;
Darwin) library=libtrommel_jni.dylib ;;
*) library=trommel_jni.dll ;;
esac
library=$CARGO_TARGET_DIR/debug/$library

# The tests of trommel-java have a script of their own: here those of the package dev.trommel.kafka run.
step "$maven" -q -B -f java/pom.xml -Pkafka-streams "-Dtrommel.build=$out/target" "-Dtest=dev.trommel.kafka.*Test" \
    -Dsurefire.failIfNoSpecifiedTests=false "-DargLine=-Ddev.trommel.library=$library" "$@" verify

module=java/trommel-kafka-streams
built=$out/target/trommel-kafka-streams
step javadoc -quiet -Xdoclint:all -Werror -d "$out/javadoc" -cp "$built/libraries/*" \
    --source-path $module/src/main/java dev.trommel.kafka

[ "${STORIES:-1}" = 0 ] && exit 0

# What a story starts ends with it; should it be ended itself, its processes are ended here.
folder=$(mktemp -d "$out/story.XXXXXX")
story_process=
trap '[ -z "$story_process" ] || kill "$story_process" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT

story() { # folder of libraries, who tells stores of commits
    local classes=$built/classes:$built/test-classes
    java -Xmx256m "-Ddev.trommel.library=$library" -cp "$classes:$1/*" dev.trommel.kafka.Story \
        "$folder/$2" "$2" &
    story_process=$!
    wait "$story_process" || die "a story of crashes went wrong: what its processes said is above"
    story_process=
}

step story "$built/libraries" hook
step story "$out/target/trommel-kafka-streams-newest/libraries" runtime
printf '\nAll tests of the stores of Kafka Streams passed, in %d s.\n' "$SECONDS"
