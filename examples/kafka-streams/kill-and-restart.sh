#!/usr/bin/env bash
# Kills the application of ./run.sh, as a crash would, and waits until it counts again: ./kill-and-restart.sh
set -euo pipefail
cd "$(dirname "$0")"
run=$PWD/target/run

if [ ! -f "$run/app.pid" ]; then
    echo 'It does not run: start ./run.sh in another terminal.' >&2
    exit 1
fi
counts=' orders of .* records replayed: '
before=$(grep "$counts" "$run/app.log" | tail -n 1)
[ -n "$before" ] || { echo 'It counts nothing yet.' >&2; exit 1; }
lines=$(wc -l <"$run/app.log")
kill -KILL "$(cat "$run/app.pid")"
for _ in $(seq 240); do
    after=$(tail -n "+$((lines + 1))" "$run/app.log" | sed -n '/killed with/,$p' | grep "$counts" | tail -n 1 || true)
    if [ -n "$after" ]; then
        printf 'before: %s\nafter:  %s\n' "$before" "$after"
        exit 0
    fi
    sleep 0.5
done
echo "It does not count again: see $run/app.log." >&2
exit 1
