# A cgroup's first I/O while another of its tasks makes its group: that takes long here, and the kernel shows the group to others before it is done.
# vm: -i -d 64M
. ./guest.sh

cgroups=/sys/fs/cgroup
load
# Long enough that the tasks are in the middle of it.
reads=$(long 2000 300)
insmod ./slow.ko function=fl_group_online microseconds=$(long 200000 30000) || fail "slow.ko"
echo +io >$cgroups/cgroup.subtree_control
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=100000 hw_queue_depth=16 submit_queues=1

# kib_of PATH: that it has read.
kib_of() {
    bytes=$(sed -n "s/^$(cat /sys/block/nullb0/dev) rbytes=\([0-9]*\) .*/\1/p" $cgroups/$1/io.fairlift.stat)
    echo $((${bytes:-0} / 1024))
}

for name in $(ours fl-noop fl-fair); do
    elevator nullb0 "$name"
    # The root is not counted before there is a group.
    mkdir $cgroups/first && sh -c 'echo 0 >"$1/cgroup.procs" && exec dd if=/dev/nullb0 of=/dev/null bs=4k count=1 iflag=direct' - $cgroups/first 2>>loads ||
        fail "the first group"
    before=$(cat /sys/module/slow/parameters/hits)
    for round in 1 2 3; do
        mkdir $cgroups/a || fail "mkdir"
        root_before=$(kib_of .)
        jobs=""
        for task in 1 2 3 4 5 6; do
            sh -c 'echo 0 >"$1/cgroup.procs" && exec dd if=/dev/nullb0 of=/dev/null bs=4k count="$2" iflag=direct' - $cgroups/a $reads 2>>loads &
            jobs="$jobs $!"
        done
        for job in $jobs; do wait "$job" || fail "dd: $(tail -n 1 loads)"; done
        # A task hears of its last request before the elevator does.
        sleep 0.5
        # What comes before the group is there counts for the root, and nothing is lost.
        its=$(kib_of a) roots=$(($(kib_of .) - root_before))
        [ $((its + roots)) = $((24 * reads)) ] && [ "$its" -gt 0 ] || fail "$name: the group had $its and the root $roots of $((24 * reads)) KiB"
        echo "$name, round $round: the group had $its of $((24 * reads)) KiB, the root $roots"
        rmdir $cgroups/a || fail "the cgroup is busy"
    done
    [ $(($(cat /sys/module/slow/parameters/hits) - before)) -ge 3 ] || fail "$name: no group was made"
    rmdir $cgroups/first || fail "the first cgroup is busy"
    drained nullb0
done
elevator nullb0 none
rmmod null_blk || fail "null_blk does not unload"
rmmod slow fairlift || fail "does not unload"
clean_log
