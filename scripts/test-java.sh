#!/usr/bin/env bash
# Builds the Java package, and runs its tests, its documents and its examples: scripts/test-java.sh [Maven's arguments]
# CARGO_TARGET_DIR: where everything is made. MAVEN: the command mvn. Nothing is timed. A JDK from 17 on and Maven are
# needed; root on Debian gets them here.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/java} CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
mkdir -p "$CARGO_TARGET_DIR"
CARGO_TARGET_DIR=$(cd "$CARGO_TARGET_DIR" && pwd)
out=$CARGO_TARGET_DIR/java
crate=crates/jni/Cargo.toml
module=java/trommel-java
maven=${MAVEN:-mvn}

step() {
    printf '\n== %s (%d s so far)\n' "$*" "$SECONDS"
    "$@"
}

die() {
    printf 'test-java: %s\n' "$*" >&2
    exit 1
}

has_tools() {
    command -v javac >/dev/null && command -v javadoc >/dev/null && command -v "$maven" >/dev/null
}

if ! has_tools; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        step apt-get update -q
        DEBIAN_FRONTEND=noninteractive step apt-get install -q -y --no-install-recommends openjdk-17-jdk-headless maven
    fi
    has_tools || die 'install a JDK from 17 on and Maven: on Debian openjdk-17-jdk-headless and maven'
fi
javac --release 17 -version >/dev/null || die 'the JDK is older than 17'

# The tests of what needs no Java. The same profile for all: without link-time optimization, which takes minutes.
step cargo test --locked --quiet --manifest-path $crate
step cargo build --locked --quiet --manifest-path $crate

# Where the jar looks for it: a folder named by system, machine and, if it is musl, that.
case $(uname -s) in
Linux) system=linux library=libtrommel_jni.so ;;
Darwin) system=macos library=libtrommel_jni.dylib ;;
*) system=windows library=trommel_jni.dll ;;
esac
machine=$(uname -m)
[ "$machine" = arm64 ] && machine=aarch64
grep -q '/ld-musl-' /proc/self/maps 2>/dev/null && machine=$machine-musl
natives=$out/natives
rm -rf "$natives"
mkdir -p "$natives/dev/trommel/native/$system-$machine"
cp "$CARGO_TARGET_DIR/debug/$library" "$natives/dev/trommel/native/$system-$machine/"

# What was fetched once is not asked for again: then it takes no network. Java's machine looks whether the library keeps
# the rules of its interface; what it finds it writes where the test runner does not expect it.
reports=$out/target/trommel-java/surefire-reports
rm -rf "$reports"
step "$maven" -q -B -f java/pom.xml "-Dtrommel.build=$out/target" "-Dtrommel.natives=$natives" -DargLine=-Xcheck:jni \
    "$@" verify
if grep -h 'in native method' "$reports"/*.dumpstream 2>/dev/null | sort | uniq -c >"$out/jni.log" && [ -s "$out/jni.log" ]; then
    die "the library does not keep the rules of JNI: $(cat "$out/jni.log")"
fi
jar=$(echo "$out"/target/trommel-java/trommel-java-*.jar)
[ -f "$jar" ] || die "there is no jar in $out/target/trommel-java"

# Every public name has a document, and every link leads somewhere.
step javadoc -quiet -Xdoclint:all -Werror -d "$out/javadoc" --module-source-path dev.trommel=$module/src/main/java \
    --module dev.trommel

# The programs of the README, as they stand, with the jar and nothing else.
examples=$out/examples
rm -rf "$examples"
mkdir -p "$examples"
awk -v to="$examples/Example" '/^```java$/ {n++; file = to n ".java"; next} /^```$/ {file = ""} file {print > file}' \
    java/README.md
for example in "$examples"/*.java; do
    mkdir "${example%.java}.d"
    (cd "${example%.java}.d" && step java -ea -p "$jar" --add-modules dev.trommel "$example")
done

printf '\nAll tests of the Java package passed, in %d s.\n' "$SECONDS"
