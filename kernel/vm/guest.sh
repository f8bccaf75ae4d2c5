# For scripts in the guest: `. ./guest.sh`.
# shellcheck shell=sh

OURS="fl-noop fl-deadline fl-as fl-cfq"

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

# Nothing in the kernel log that should not be there.
clean_log() {
    if dmesg | grep -E 'BUG|WARNING|Oops|Call Trace|blocked for more|stall|lockup|I/O error|refcount|list_(add|del) corruption'; then
        fail "the kernel log is not clean"
    fi
}

# A field of fio's JSON without a JSON parser: value KEY < FILE, the first one.
value() {
    sed -n "s/^ *\"$1\" : \([0-9.]*\),*$/\1/p" | head -n 1
}
