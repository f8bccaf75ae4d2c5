# null_blk, random reads of 4 KiB, 32 at a time a job, with 1 and 2 hardware queues, 1 and 4 jobs in one cgroup, and 4 in a cgroup each (4g): what an elevator costs. The machine's time is its instructions.
# vm: -d 64M -t 7200
. ./guest.sh

rounds=${ROUNDS:-1}
# As much again before, while the jobs begin: they are measured all at once. Of the machine's own time.
milliseconds=${MILLISECONDS:-1000}
load
cgroups=/sys/fs/cgroup
echo +io >$cgroups/cgroup.subtree_control
for job in 1 2 3 4; do
    mkdir $cgroups/job$job
    echo $((100 * job)) >$cgroups/job$job/io.fairlift.weight || fail "weight"
done

# one PREFIX QUEUES JOBS ROUND: all jobs at once, with the elevator that is there.
one() {
    running="" count=${3%g}
    for job in $(seq "$count"); do
        group=job1
        [ "$3" = "$count" ] || group=job$job
        (echo 0 >$cgroups/$group/cgroup.procs && exec fio --output="$1,$2,$3,$job-$4.json" --output-format=json --name=r \
            --filename=/dev/nullb0 --rw=randread --bs=4k --ioengine=libaio --iodepth=32 --direct=1 --time_based --runtime="${milliseconds}ms" \
            --ramp_time="${milliseconds}ms" --size=1g --norandommap --gtod_reduce=1) &
        running="$running $!"
    done
    for pid in $running; do wait "$pid" || fail "fio"; done
}

for queues in ${QUEUES:-1 2}; do
    modprobe null_blk nr_devices=1 queue_mode=2 irqmode=1 completion_nsec=0 hw_queue_depth=64 submit_queues="$queues"
    for round in $(seq "$rounds"); do
        for jobs in ${JOBS:-1 4 4g}; do
            for name in ${ELEVATORS:-$ALL}; do
                elevator nullb0 "$name"
                one "cost-$name" "$queues" "$jobs" "$round"
            done
        done
    done
    # How long the lock is held, of ours; by itself, as to look at the clock costs something.
    for name in $OURS; do
        elevator nullb0 "$name"
        echo 1 >/sys/kernel/debug/block/nullb0/sched/lock_holds
        one "holds-$name" "$queues" 4 1
        sed "s/^/$name $queues /" /sys/kernel/debug/block/nullb0/sched/lock_holds >>holds
    done
    elevator nullb0 none
    rmmod null_blk || fail "null_blk does not unload"
done
rmmod fairlift || fail "does not unload"
clean_log
