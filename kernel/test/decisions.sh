# What the core decides is told: turns, idling and held bios, as tracepoints and as messages in the disk's trace.
# vm: -i -d 64M
. ./guest.sh

cgroups=/sys/fs/cgroup
tracing=/sys/kernel/tracing
mount -t tracefs tracefs $tracing || fail "no tracefs"
load
echo +io >$cgroups/cgroup.subtree_control
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=1000000 hw_queue_depth=1 submit_queues=1
number=$(cat /sys/block/nullb0/dev)

seconds=$(long 2 1)

# reads GROUP: for some seconds.
reads() {
    sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - $cgroups/$1 fio --output=/dev/null --name=r --filename=/dev/nullb0 \
        --rw=randread --bs=4k --direct=1 --ioengine=psync --time_based --runtime=$seconds --size=1g --norandommap &
    jobs="$jobs $!"
}

load_it() {
    jobs=""
    reads a
    reads b
    reads c
    for job in $jobs; do wait "$job" || fail "fio"; done
}

# told WHAT PATTERN: how often is that in the trace?
told() {
    times=$(grep -c "$2" trace)
    [ "$times" -gt 0 ] || fail "$name: $1 is not told"
    echo "$name: $1 told $times times"
}

for name in $(ours fl-noop fl-cfq); do
    elevator nullb0 "$name"
    for group in a b c; do mkdir $cgroups/$group || fail "mkdir"; done
    echo "$number riops=20" >$cgroups/c/io.fairlift.max || fail "io.fairlift.max"

    echo 1 >$tracing/events/fairlift/enable || fail "no tracepoints"
    : >$tracing/trace
    load_it
    echo 0 >$tracing/events/fairlift/enable
    cat $tracing/trace >trace
    told "a turn" ' fairlift_turn: .* group=[1-9]'
    told "idling" ' fairlift_idle: .* wait_ns=[1-9]'
    told "a held bio" ' fairlift_held: .* read bytes=4096 held=[1-9]'
    # Of the cgroup that the kernel knows by that number.
    id=$(stat -c %i $cgroups/a)
    told "a's turn" " fairlift_turn: .* cgroup=$id\$"

    echo blk >$tracing/current_tracer && echo 1 >/sys/block/nullb0/trace/enable || fail "no blktrace"
    : >$tracing/trace
    load_it
    echo 0 >/sys/block/nullb0/trace/enable
    cat $tracing/trace >trace
    echo nop >$tracing/current_tracer
    told "a turn, to blktrace," ' m *N .*fairlift turn group [1-9]'
    told "idling, to blktrace," ' m *N .*fairlift idle group'
    told "a held bio, to blktrace," ' m *N .*fairlift held group [1-9]* read'

    # And not when nobody asks.
    : >$tracing/trace
    load_it
    ! grep -q fairlift $tracing/trace || fail "$name: told unasked"
    for group in a b c; do rmdir $cgroups/$group || fail "$group is busy"; done
done
elevator nullb0 none
rmmod null_blk || fail "null_blk does not unload"
rmmod fairlift || fail "does not unload"
clean_log
