#!/bin/sh
# Checks the page of `trommel replay` in a headless Chromium: its own self-check (#test), wide and narrow, under several policies.
#   scripts/check-replay.sh [TROMMEL [FOLDER]]      FOLDER keeps the pages and pictures of them
# Needs chromium (Debian: apt-get install chromium).
set -eu
trommel=${1:-target/release/trommel}
folder=${2:-$(mktemp -d)}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "no chromium: apt-get install chromium" >&2
    exit 2
}
browse() {
    "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$folder/profile" "$@" 2> "$folder/chromium.log"
}
mkdir -p "$folder"
wrong=0
for policy in lazy-leveling leveling tiering; do
    page="$folder/$policy.html"
    "$trommel" replay "$page" --policy "$policy"
    for width in 1280 800; do
        found=$(browse --window-size="$width,1000" --virtual-time-budget=60000 --dump-dom "file://$page#test" | sed -n 's/.*<div id="result">\([^<]*\).*/\1/p')
        echo "$policy, $width pixels: ${found:-the page said nothing}"
        case $found in
            "self-check: fine"*", $width pixels wide"*) ;;
            *) wrong=1 ;;
        esac
        browse --window-size="$width,1000" --screenshot="$folder/$policy-$width.png" "file://$page#step=60"
    done
done
exit $wrong
