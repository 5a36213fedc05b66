#!/usr/bin/env bash
# Runs a broker, a sender of orders, and the application, which is restarted if it is killed: ./run.sh
# Shows the counts here and on http://127.0.0.1:8080. Ctrl-C ends it. In another terminal: ./kill-and-restart.sh
# TROMMEL_LIBRARY: the native library, if it is built already.
set -euo pipefail
cd "$(dirname "$0")"
run=$PWD/target/run
mkdir -p "$run"

if [ ! -d target/libraries ]; then
    echo 'Building: the native library and the jars of Trommel, then this project.'
    mvn -q -B -f ../../java/pom.xml -Pkafka-streams -pl .,trommel-java,trommel-kafka-streams \
        "-Dtrommel.build=$PWD/target/trommel" -DskipTests install
    mvn -q -B process-classes
fi
if [ -z "${TROMMEL_LIBRARY:-}" ]; then
    cargo build --locked --quiet --release --manifest-path ../../crates/jni/Cargo.toml --target-dir target/native
    for TROMMEL_LIBRARY in "$PWD"/target/native/release/{libtrommel_jni.so,libtrommel_jni.dylib,trommel_jni.dll}; do
        [ -f "$TROMMEL_LIBRARY" ] && break
    done
fi

pids=()
finish() {
    trap - INT TERM EXIT
    local pid
    # The application first, so that it can tell the broker that it leaves.
    for pid in $(cat "$run/app.pid" 2>/dev/null) "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    wait
    rm -f "$run/app.pid"
}
trap finish EXIT
trap 'exit 0' INT TERM

./broker.sh &
pids+=($!)
java -Xmx128m -cp 'target/classes:target/libraries/*' orders.SendOrders >"$run/orders.log" 2>&1 &
pids+=($!)
for _ in $(seq 120); do
    grep -qs 'sends orders' "$run/orders.log" && break
    kill -0 "${pids[1]}" 2>/dev/null || break
    sleep 0.5
done
if ! grep -qs 'sends orders' "$run/orders.log"; then
    echo "The broker does not answer: see $run/broker/broker.log and $run/orders.log." >&2
    exit 1
fi
: >"$run/app.log"
while true; do
    java -Xmx256m "-Ddev.trommel.library=$TROMMEL_LIBRARY" -cp 'target/classes:target/libraries/*' \
        orders.OrdersApp > >(tee -a "$run/app.log") 2>&1 &
    echo $! >"$run/app.pid"
    status=0
    wait "$(cat "$run/app.pid")" || status=$?
    if [ $status != 137 ]; then
        echo "The application ended by itself, with status $status." >&2
        exit 1
    fi
    echo '--- killed with kill -9; it starts again ---' | tee -a "$run/app.log"
done
