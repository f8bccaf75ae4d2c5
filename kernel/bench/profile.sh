# null_blk, random reads of 4 KiB, 32 at a time, one job in a cgroup, 1 hardware queue: in which functions an elevator's instructions are spent.
# vm: -d 64M -t 3600 -p nokaslr
. ./guest.sh

load
cgroups=/sys/fs/cgroup
echo +io >$cgroups/cgroup.subtree_control
mkdir $cgroups/job
echo 100 >$cgroups/job/io.fairlift.weight || fail "weight"
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=1 completion_nsec=0 hw_queue_depth=64 submit_queues=1
cat /proc/kallsyms >kallsyms

# reads COUNT
reads() {
    (echo 0 >$cgroups/job/cgroup.procs && exec fio --output=fio.log --name=r --filename=/dev/nullb0 --rw=randread --bs=4k \
        --ioengine=libaio --iodepth=32 --direct=1 --number_ios="$1" --size=1g --norandommap --gtod_reduce=1) || fail "fio"
}

# Two lengths, whose difference is what so many requests more take: the beginning and the end of fio are not in it.
for name in ${ELEVATORS:-none mq-deadline fl-noop fl-fair}; do
    elevator nullb0 "$name"
    reads 1000
    ./mark
    reads 10000
    ./mark
    reads 30000
    ./mark
    echo "$name" >>profiled
done
elevator nullb0 none
rmmod null_blk || fail "null_blk does not unload"
rmmod fairlift || fail "does not unload"
clean_log
