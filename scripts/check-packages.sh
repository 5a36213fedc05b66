#!/bin/sh
# What a release has to stand, beside .ci/run. Each needs a network; the first downloads no more than the lock names.
#   scripts/check-packages.sh [publish] [semver [REVISION]] [deny]      without names all three
#   publish  packages the crates that are published, and builds each from its package alone, with those before it from a registry that
#            cargo makes for it. Nothing is uploaded.
#   semver   compares the API with that of a revision: by default the last tag, or the last commit of the version before this one.
#            It needs cargo install cargo-semver-checks --locked.
#   deny     licences, sources and advisories of all crates in the lock (deny.toml): cargo install cargo-deny --locked
set -eu
cd "$(dirname "$0")/.."

published="-p trommel-filters -p trommel -p trommel-guards -p trommel-tracing -p trommel-objects"

usage() {
    sed -n '2,8s/^# *//p' "$0"
}

need() {
    cargo "$1" --version >/dev/null 2>&1 || {
        echo "cargo $1 is missing: cargo install cargo-$1 --locked" >&2
        exit 2
    }
}

step() {
    printf '\n== %s\n' "$*"
    "$@"
}

publish() {
    # shellcheck disable=SC2086
    step cargo publish --dry-run --locked --allow-dirty $published
}

before_this_version() {
    echo "$(git log -1 --format=%H -G'^version = ' -- Cargo.toml)^"
}

semver() {
    need semver-checks
    revision=${1:-$(git describe --tags --abbrev=0 2>/dev/null || before_this_version)}
    # shellcheck disable=SC2086
    step cargo semver-checks --baseline-rev "$revision" $published
}

deny() {
    need deny
    step cargo deny check licenses bans sources
    step cargo deny check advisories
}

[ $# -gt 0 ] || set -- publish semver deny
while [ $# -gt 0 ]; do
    case $1 in
    publish | deny) "$1" ;;
    semver)
        revision=
        case ${2:-} in '' | publish | deny) ;; *) revision=$2 && shift ;; esac
        semver "$revision"
        ;;
    *)
        usage
        exit 2
        ;;
    esac
    shift
done
