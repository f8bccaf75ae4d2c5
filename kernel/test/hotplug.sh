# A processor with a hardware queue of its own goes and comes while limits hold a task's reads back.
# vm: -d 64M -t 600
. ./guest.sh

cgroups=/sys/fs/cgroup
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=1000000 hw_queue_depth=64 submit_queues=2
disk=nullb0
number=$(cat /sys/block/$disk/dev)
echo +io >$cgroups/cgroup.subtree_control
mkdir $cgroups/a
load
for name in $(ours fl-cfq); do
    elevator $disk "$name"
    echo "$number riops=1" >$cgroups/a/io.fairlift.max || fail "io.fairlift.max"
    # From both processors: batches, single requests, and writes that nothing may merge with.
    jobs=""
    for options in "--rw=randread --ioengine=libaio --iodepth=64" "--rw=randwrite --ioengine=psync --sync=dsync --numjobs=4"; do
        for cpu in 0 1; do
            # shellcheck disable=SC2086 # words
            sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - $cgroups/a taskset -c $cpu fio --output=/dev/null --name=load \
                --filename=/dev/$disk --bs=4k --direct=1 --size=64m --time_based --runtime=1000 $options &
            jobs="$jobs $!"
        done
    done
    sleep 4
    for online in 0 1; do
        started=$(cut -d. -f1 /proc/uptime)
        echo $online >/sys/devices/system/cpu/cpu1/online &
        switch=$! patience=150
        while kill -0 $switch 2>/dev/null && [ "$patience" -gt 0 ]; do
            sleep 0.1
            patience=$((patience - 1))
        done
        if kill -0 $switch 2>/dev/null; then
            echo "$name: cpu1 online $online: not done after 15 s"
            bad="$bad|$name: online $online hangs"
            echo "$number riops=max wiops=max" >$cgroups/a/io.fairlift.max
        else
            echo "$name: cpu1 online $online: $(($(cut -d. -f1 /proc/uptime) - started)) s"
        fi
        wait $switch
    done
    echo "$number riops=max wiops=max" >$cgroups/a/io.fairlift.max
    kill $jobs
    wait
    drained $disk
done
elevator $disk none
rmmod fairlift || fail "does not unload"
clean_log
[ -z "$bad" ] || fail "hotplug: $bad"
