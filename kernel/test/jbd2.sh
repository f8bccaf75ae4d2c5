# jbd2 goes and comes while the module is loaded: no harm, and the probe is on only while a queue has the tunable yield.
# vm: -d 256M -t 600
. ./guest.sh

tracing=/sys/kernel/tracing
mount -t tracefs tracefs $tracing || fail "no tracefs"

# probed WHEN YES-OR-NO: is jbd2's wait probed?
probed() {
    sleep 1
    if grep -q jbd2_log_wait_commit $tracing/enabled_functions; then is=yes; else is=no; fi
    echo "$1: probed: $is"
    [ "$is" = "$2" ] || bad="$bad|$1: probed: $is, not $2"
}

jbd2_goes() { rmmod ext4 && rmmod jbd2 || fail "jbd2 does not unload"; }
jbd2_comes() { modprobe ext4 || fail "jbd2 does not load"; }

# Commits that somebody waits for, on vda.
write_files() {
    mkfs.ext4 -q -F /dev/vda && mount -t ext4 /dev/vda /mnt || fail "mount"
    fs_mark -d /mnt/a -s 4096 -n 20 -S 1 >/dev/null 2>&1 || fail "fs_mark"
    umount /mnt || fail "umount"
}
waits() { sed -n 's/^journal_waits //p' /sys/kernel/debug/block/vda/sched/state; }

load
jbd2_comes
elevator vda fl-cfq
write_files
probed "yield 0" no
[ "$(waits)" = 0 ] || bad="$bad|$(waits) waits seen with yield 0"
for round in 1 2 3; do
    echo 1 >/sys/block/vda/queue/iosched/yield
    probed "round $round, yield 1" yes
    jbd2_goes
    jbd2_comes
    probed "round $round, jbd2 loaded again" yes
    before=$(waits)
    write_files
    [ "$(waits)" -gt "$before" ] || bad="$bad|round $round: no wait seen"
    echo 0 >/sys/block/vda/queue/iosched/yield
    probed "round $round, yield 0 again" no
    jbd2_goes
    jbd2_comes
    write_files
done
echo 1 >/sys/block/vda/queue/iosched/yield
probed "yield 1" yes
elevator vda mq-deadline
probed "no queue of ours is left" no
elevator vda fl-cfq
echo 1 >/sys/block/vda/queue/iosched/yield
jbd2_goes
elevator vda none
rmmod fairlift || fail "does not unload"
jbd2_comes
clean_log
[ -z "$bad" ] || fail "jbd2: $bad"
