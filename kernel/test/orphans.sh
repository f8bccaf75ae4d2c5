# What waits for a limit goes when the limit is taken away, when its cgroup is removed, and when the elevator is changed.
# vm: -i -d 64M -t 600
. ./guest.sh

cgroups=/sys/fs/cgroup
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=1000000 hw_queue_depth=8 submit_queues=1
disk=nullb0
number=$(cat /sys/block/$disk/dev)
echo +io >$cgroups/cgroup.subtree_control

held() { sed -n 's/^core: .* held \([0-9]*\),.*/\1/p' /sys/kernel/debug/block/$disk/sched/state; }

# A cgroup that may do two requests a day, and 64 of a task of it.
begin() {
    mkdir $cgroups/a || fail "mkdir"
    echo "$number rbps=1 wbps=1 riops=1" >$cgroups/a/io.fairlift.max || fail "io.fairlift.max"
    sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - $cgroups/a fio --output=/dev/null --name=load --filename=/dev/$disk --rw=randread --bs=4k \
        --direct=1 --ioengine=libaio --iodepth=64 --number_ios=64 --size=64m &
    job=$!
    patience=50
    while [ "$(held)" -lt 4 ] && [ "$patience" -gt 0 ]; do
        sleep 0.2
        patience=$((patience - 1))
    done
    [ "$(held)" -ge 4 ] || fail "only $(held) are held"
}

# ends WHAT: the task is done soon, with all its requests.
ends() {
    patience=100
    while kill -0 $job 2>/dev/null && [ "$patience" -gt 0 ]; do
        sleep 0.1
        patience=$((patience - 1))
    done
    if kill -0 $job 2>/dev/null; then
        echo "$name: $1: still there after 10 s, held $(held)"
        bad="$bad|$name: $1"
        elevator $disk none
        elevator $disk "$name"
    else
        echo "$name: $1: done after $((100 - patience)) tenths of a second"
    fi
    wait $job
}

load
for name in $(ours fl-cfq); do
    elevator $disk "$name"
    begin
    echo "$number rbps=max wbps=max riops=max" >$cgroups/a/io.fairlift.max
    ends "limit taken away"
    drained $disk
    rmdir $cgroups/a || fail "rmdir"

    begin
    for task in $(cat $cgroups/a/cgroup.procs); do echo "$task" >$cgroups/cgroup.procs; done
    rmdir $cgroups/a || fail "rmdir with requests held"
    ends "cgroup removed"
    drained $disk

    # Debts of centuries are no reason for the timer to come back at once: how often did it, in three seconds?
    mkdir $cgroups/a
    echo "$number wbps=1" >$cgroups/a/io.fairlift.max
    for i in 1 2; do
        sh -c 'echo 0 >"$1/cgroup.procs" && exec dd if=/dev/zero of="$2" bs=1M count=32 oflag=direct 2>/dev/null' - $cgroups/a /dev/$disk &
    done
    sleep 2
    before=$(awk '/^ *LOC:/ { print $2 + $3 }' /proc/interrupts)
    sleep 3
    timers=$(($(awk '/^ *LOC:/ { print $2 + $3 }' /proc/interrupts) - before))
    echo "$name: $timers timer interrupts in 3 s under a debt of years"
    [ "$timers" -lt 6000 ] || bad="$bad|$name: timer storm: $timers"
    started=$(cut -d. -f1 /proc/uptime)
    elevator $disk none
    took=$(($(cut -d. -f1 /proc/uptime) - started))
    [ "$took" -le 3 ] || bad="$bad|$name: changing the elevator took $took s"
    wait
    rmdir $cgroups/a || fail "rmdir"
done
rmmod fairlift || fail "does not unload"
clean_log
[ -z "$bad" ] || fail "orphans: $bad"
