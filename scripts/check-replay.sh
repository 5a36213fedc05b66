#!/bin/sh
# Checks the pages of `trommel replay` in a headless Chromium: their own self-check (#test), wide and narrow, of trees that are grown
# under several policies, and of runs that were recorded.
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
check() {
    page="$folder/$1.html"
    for width in 1280 800 500; do
        found=$(browse --window-size="$width,1000" --virtual-time-budget=60000 --dump-dom "file://$page#test" | sed -n 's/.*<div id="result">\([^<]*\).*/\1/p')
        echo "$1, $width pixels: ${found:-the page said nothing}"
        case $found in
            "self-check: fine"*", $width pixels wide"*) ;;
            *) wrong=1 ;;
        esac
        browse --window-size="$width,1000" --screenshot="$folder/$1-$width.png" "file://$page#step=60"
    done
}
for policy in lazy-leveling leveling tiering; do
    "$trommel" replay "$folder/$policy.html" --policy "$policy"
    check "$policy"
done
# A load with merges beside it; updates, merged table by table; a guard that has no codes.
awk 'BEGIN { for (n = 0; n < 40000; n++) printf "key%06d\n", n * 7919 % 40000 }' > "$folder/keys"
rm -rf "$folder/loaded" "$folder/written" "$folder/unguarded"
"$trommel" load --db "$folder/loaded" "$folder/keys" --write-buffer 64KiB --size-ratio 4 \
    --record "$folder/loaded.jsonl" --record-key key000700 --record-key key020000 --record-key nowhere > /dev/null
"$trommel" bench write --keys 30000 --pattern update --write-buffer 128KiB --size-ratio 4 --policy leveling --granularity partial \
    --table-bytes 64KiB --db "$folder/written" --record "$folder/written.jsonl" > /dev/null
"$trommel" bench write --keys 20000 --write-buffer 128KiB --size-ratio 4 --guard blocked-bloom --db "$folder/unguarded" \
    --record "$folder/unguarded.jsonl" > /dev/null
for run in loaded written unguarded; do
    "$trommel" replay "$folder/$run.html" --run "$folder/$run.jsonl"
    check "$run"
done
exit $wrong
