#!/usr/bin/env bash
# Compares Trommel with plyvel and rocksdict, as programs in Python see them: crates/python/bench/run.sh [--keys N] [--rounds N]
# The wheel is built as it is given away. PYTHON: the interpreter. CARGO_TARGET_DIR: where everything is made. Run it on a
# machine that does nothing else.
set -euo pipefail
cd "$(dirname "$0")/../../.."

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/python}
mkdir -p "$CARGO_TARGET_DIR"
out=$(cd "$CARGO_TARGET_DIR" && pwd)/python-bench
environment=$out/venv
[ -x "$environment/bin/python" ] || "${PYTHON:-python3}" -m venv "$environment"
pip=("$environment/bin/python" -m pip --quiet --disable-pip-version-check install)
"${pip[@]}" 'maturin>=1.9,<2' 'plyvel==1.5.1' 'rocksdict==0.3.29'

rm -rf "$out/wheels"
"$environment/bin/maturin" build --quiet --locked --release --manifest-path crates/python/Cargo.toml \
    --interpreter "$environment/bin/python" --out "$out/wheels"
"${pip[@]}" --force-reinstall --no-deps "$out"/wheels/*.whl
exec "$environment/bin/python" crates/python/bench/compare.py "$@"
