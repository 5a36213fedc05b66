#!/usr/bin/env bash
# Compares Trommel with RocksDB, as programs in Java see them: java/bench/run.sh [--keys N] [--rounds N]
# CARGO_TARGET_DIR: where everything is made. ROCKSDB: the version of rocksdbjni, which Maven fetches. The library is
# built as it is given away. Run it on a machine that does nothing else.
set -euo pipefail
cd "$(dirname "$0")/../.."

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/java}
mkdir -p "$CARGO_TARGET_DIR"
out=$(cd "$CARGO_TARGET_DIR" && pwd)/java-bench
rocksdb=${ROCKSDB:-11.8.1}
sources=java/trommel-java/src/main

cargo build --locked --quiet --release --manifest-path crates/jni/Cargo.toml
for library in "$CARGO_TARGET_DIR"/release/libtrommel_jni.{so,dylib}; do
    [ -f "$library" ] && break
done
[ -f "$out/rocksdbjni-$rocksdb.jar" ] ||
    mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
        "-Dartifact=org.rocksdb:rocksdbjni:$rocksdb" "-DoutputDirectory=$out"

rm -rf "$out/classes"
mkdir -p "$out/classes/dev/trommel"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' crates/jni/Cargo.toml)
sed "s/\${project.version}/$version/" $sources/resources/dev/trommel/version.properties \
    >"$out/classes/dev/trommel/version.properties"
find $sources/java -name '*.java' ! -name module-info.java -print0 |
    xargs -0 javac -d "$out/classes" -cp "$out/rocksdbjni-$rocksdb.jar" java/bench/Compare.java
exec java -Xms1g -Xmx1g -XX:+UseParallelGC "-Ddev.trommel.library=$library" \
    -cp "$out/classes:$out/rocksdbjni-$rocksdb.jar" Compare "$@"
