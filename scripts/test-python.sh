#!/usr/bin/env bash
# Builds the Python package, and runs its tests, type checks and examples: scripts/test-python.sh [-- pytest's arguments]
# PYTHON: the interpreter. CARGO_TARGET_DIR: where things are built. TROMMEL: the command, if it is built already. What
# an optional part needs and pip cannot get is told, and that part is left out. Nothing is timed but how soon interrupts
# end calls.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "${1:-}" = -- ] && shift

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target/python} CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
mkdir -p "$CARGO_TARGET_DIR"
CARGO_TARGET_DIR=$(cd "$CARGO_TARGET_DIR" && pwd)
package=crates/python
python=${PYTHON:-python3}

step() {
    printf '\n== %s (%d s so far)\n' "$*" "$SECONDS"
    "$@"
}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    printf '%s is no Python from 3.11 on: name one with PYTHON\n' "$python" >&2
    exit 1
fi
environment=$CARGO_TARGET_DIR/venv
[ -x "$environment/bin/python" ] || step "$python" -m venv "$environment"
pip=("$environment/bin/python" -m pip --quiet --disable-pip-version-check install)
# What checks types, and what is typed, have exact versions: the next one may refuse what these take.
step "${pip[@]}" 'maturin>=1.9,<2' 'pytest>=8,<10' 'mypy==2.4.1' 'typing_extensions>=4.12,<5'
# Without them the tests of their arrays are skipped.
step "${pip[@]}" 'polars==2.1.0' 'duckdb==2.0.1' || printf 'polars or duckdb cannot be had: not tested\n' >&2
step "${pip[@]}" 'numpy==2.4.6' 'pyarrow==26.0.1' || printf 'numpy or pyarrow cannot be had: their arrays are not tested\n' >&2

# Wheels bring the command along.
command=${TROMMEL:-$CARGO_TARGET_DIR/debug/trommel}
[ -n "${TROMMEL:-}" ] || step cargo build --locked -p trommel-cli
scripts=$PWD/$package/trommel._trommel.data/scripts
trap 'rm -rf "$scripts"' EXIT
mkdir -p "$scripts"
cp "$command" "$scripts/trommel"

wheels=$CARGO_TARGET_DIR/wheels
rm -rf "$wheels" "$wheels"-*
# The profile for tests: without link-time optimization, which takes minutes.
build_for() {
    "$environment/bin/maturin" build --quiet --locked --profile dev --manifest-path $package/Cargo.toml \
        --interpreter "$1" --out "$2"
}
step build_for "$environment/bin/python" "$wheels"
step "${pip[@]}" --force-reinstall --no-deps "$wheels"/*.whl
# Without its lock an interpreter has no stable interface, and needs a wheel of its own.
# `uv python install 3.14t` installs one, where GitHub can be reached.
free=
for other in python3.14t "$HOME"/.pyenv/versions/3.14.*t/bin/python3.14t; do
    "$other" -c 'import ensurepip, sys; sys.exit(sys._is_gil_enabled())' 2>/dev/null || continue
    step build_for "$other" "$wheels-3.14t"
    free=$other
    break
done

step "$environment/bin/python" -m pytest -q -p no:cacheprovider $package/tests "$@"
# One wheel serves them all: what is here of later ones runs the same tests, but for those of arrays, while types are
# checked.
test_with() {
    local own=$environment-$2 wheels=${3:-$wheels}
    [ -x "$own/bin/python" ] || "$1" -m venv "$own"
    local pip_of_own=("$own/bin/python" -m pip --quiet --disable-pip-version-check install)
    "${pip_of_own[@]}" 'pytest>=8,<10' 'typing_extensions>=4.12,<5'
    "${pip_of_own[@]}" --force-reinstall --no-deps "$wheels"/*.whl
    "$own/bin/python" -m pytest -q -p no:cacheprovider tests
}
cd $package
versions=() others=()
if [ -n "$free" ]; then
    test_with "$free" 3.14t "$wheels-3.14t" >"$CARGO_TARGET_DIR/python-3.14t.log" 2>&1 &
    versions+=(3.14t) others+=($!)
fi
for other in python3.12 python3.13 python3.14 "$HOME"/.pyenv/versions/3.1[2-9].*[0-9]/bin/python; do
    version=$("$other" -c 'import ensurepip, sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    case " ${versions[*]:-} " in *" $version "*) continue ;; esac
    test_with "$other" "$version" >"$CARGO_TARGET_DIR/python-$version.log" 2>&1 &
    versions+=("$version") others+=($!)
done
step "$environment/bin/mypy" --strict --cache-dir "$CARGO_TARGET_DIR/mypy" python tests
# The stubs name what there is, and no more.
step "$environment/bin/python" -m mypy.stubtest --concise --allowlist tests/stubtest.allow trommel
# pyright is a program for node.js, which comes as a package, too.
if step "${pip[@]}" 'pyright[nodejs]==1.1.414' && "$environment/bin/pyright" --version >/dev/null 2>&1; then
    step "$environment/bin/pyright" --pythonpath "$environment/bin/python" python/trommel tests
else
    printf 'pyright cannot be had: the types are checked by mypy alone\n' >&2
fi
status=0
for at in "${!others[@]}"; do
    wait "${others[$at]}" || status=1
    printf '\n== pytest with Python %s\n' "${versions[$at]}"
    cat "$CARGO_TARGET_DIR/python-${versions[$at]}.log"
done
exit "$status"
