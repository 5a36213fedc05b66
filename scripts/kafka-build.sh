# Sourced by scripts that run brokers: builds the native library in release profile and the module with its tests.
# Give: kafka (oldest or newest), usage (a function). Sets: CARGO_TARGET_DIR, LIBRARY, out (a folder for its own files),
# teller (who tells stores of commits), classpath.
# CARGO_TARGET_DIR: where everything is made. MAVEN: the command mvn. LIBRARY: the native library, if it is made.
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
built=$out/target/trommel-kafka-streams
classpath="$built/classes:$built/test-classes:$out/target/$libraries/libraries/*"
