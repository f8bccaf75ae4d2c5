# For scripts in the guest: `. ./guest.sh`.
# shellcheck shell=sh

OURS="fl-noop fl-deadline fl-as fl-cfq fl-fair"
ALL="none mq-deadline kyber bfq $OURS"

# What the test's runner set: FULL=1 for the long form.
FULL=""
[ ! -e ./settings ] || . ./settings

# If this is the long form: the first word, else the second.
long() {
    if [ -n "$FULL" ]; then echo "$1"; else echo "$2"; fi
}

# Which of our elevators a test is about: ELEVATORS if the runner was told, all in the long form, else those named. Each is in some short forms.
ours() {
    echo "${ELEVATORS:-$(long "$OURS" "$*")}"
}

# Print why and give up; the kernel log comes with it.
fail() {
    echo "FAILED: $*"
    dmesg | tail -n 30
    exit 1
}

# Load our module and the distribution's elevators.
load() {
    modprobe -a bfq kyber-iosched
    insmod /host/fairlift.ko "$@" || fail "fairlift.ko does not load"
}

# elevator DISK NAME
elevator() {
    echo "$2" >"/sys/block/$1/queue/scheduler" || fail "cannot select $2 on $1"
    grep -q "\[$2\]" "/sys/block/$1/queue/scheduler" || fail "$1 has $(cat "/sys/block/$1/queue/scheduler"), not $2"
}

# The kernel log without KCSAN's reports of races between parts of the kernel itself (on a kernel that has KCSAN): where none of the four
# innermost functions of either access is ours. Says which those are.
log_but_kernel_races() {
    dmesg | awk '
        { line = $0; sub(/^\[[^]]*\] ?/, "", line) }
        line ~ /^=+$/ && report == "" { report = $0 "\n"; ours = 0; depth = 9; next }
        report == "" { print; next }
        { report = report $0 "\n" }
        line ~ /^BUG: KCSAN: / { kcsan = 1; pair = line }
        line ~ /^(read|write|race)/ { depth = 0; next }
        depth < 4 && line ~ /^ [^ ]/ { depth++; if (line ~ /\[fairlift\]/) ours = 1 }
        line ~ /^=+$/ {
            if (kcsan && !ours) others[pair]++; else printf "%s", report
            report = ""; kcsan = 0
        }
        END {
            printf "%s", report
            for (pair in others) print others[pair] "x, both sides the kernel'"'"'s own: " pair >"/tmp/races"
        }'
}

# Nothing in the kernel log that should not be there; if there is, it comes with what was around it.
clean_log() {
    rm -f /tmp/races
    if log_but_kernel_races | grep -E -B 2 -A 45 -m 1 \
        'BUG|WARNING|Oops|Call Trace|blocked for more|detected stall|lockup|I/O error|refcount_t|list_(add|del) corruption'; then
        fail "the kernel log is not clean"
    fi
    [ ! -e /tmp/races ] || sort -rn /tmp/races
}

# A field of fio's JSON without a JSON parser: value KEY < FILE, the first one.
value() {
    sed -n "s/^ *\"$1\" : \([0-9.]*\),*$/\1/p" | head -n 1
}

# How much memory the kernel has for itself, KiB: slabs that cannot be reclaimed, and vmalloc.
kernel_memory() {
    awk '/^SUnreclaim|^VmallocUsed/ { sum += $2 } END { print sum }' /proc/meminfo
}

# Nothing is left in the queue of DISK under one of our elevators.
drained() {
    state=/sys/kernel/debug/block/$1/sched/state
    grep -q '^queued 0$' "$state" && grep -q '^in_flight 0$' "$state" && grep -q 'requests 0 of' "$state" &&
        grep -q '^vanished 0$' "$state" || {
        cat "$state"
        fail "requests are left in the queue of $1"
    }
}
