#!/bin/sh
# Records the I/O real fio generates, as test data for tests/streams.rs: one file per case of cases.txt.
# Needs fio 3.33 (Debian 12: apt-get install fio). Usage: ./record.sh [case...]
#
# fio runs with `--debug=io`, which prints every I/O it makes up, and with the null engine, so nothing is read or written. File names
# are relative because zipf and pareto streams are seeded from them. Kept: for each process the count and the cksum(1) of all
# lines, and the first 200 lines. A line: file, r/w/t, offset, length (bytes); `file s` = fsync, `file d` = fdatasync.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
while read -r name arguments; do
    case "$name" in '' | '#'*) continue ;; esac
    [ $# -eq 0 ] || echo " $* " | grep -q " $name " || continue
    rm -f process.*
    # shellcheck disable=SC2086 # arguments are words
    fio --debug=io --name=a --ioengine=null $arguments 2>&1 | python3 -c '
import re, sys
kinds = {"0": "r", "1": "w", "2": "t", "3": "s", "4": "d"}
out = {}
for line in sys.stdin:
    m = re.match(r"io +(\d+) +fill: io_u 0x[0-9a-f]+, off=0x([0-9a-f]+),len=0x([0-9a-f]+),ddir=(\d),file=(\S+)", line.replace(": off=", ", off="))
    if m and m[4] in kinds:
        pid, off, length, ddir, file = m[1], int(m[2], 16), int(m[3], 16), m[4], m[5]
        if pid not in out: out[pid] = open("process.%06d" % len(out), "w")
        print(file, kinds[ddir], *([] if ddir in "34" else [off, length]), file=out[pid])
'
    for process in process.*; do
        [ -e "$process" ] || { echo 'process 0 4294967295'; continue; } # no I/O at all
        echo "process $(wc -l < "$process") $(cksum < "$process" | cut -d' ' -f1)"
        head -n 200 "$process"
    done > "$here/$name.txt"
done < "$here/cases.txt"
