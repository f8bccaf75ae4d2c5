# A request that comes while another processor tells the core of what has come is not forgotten. Both take long here, so that they meet.
# vm: -d 1G,queues=2 -t 400
. ./guest.sh

load
insmod ./slow.ko function=task:blk_mq_run_hw_queue,fl_insert microseconds=300 || fail "slow.ko"

# What is written between flushes waits for a flush that waits for the forgotten one: nothing comes that would ask for it.
for name in $(ours fl-as fl-cfq); do
    elevator vda "$name"
    fio --output=fio-log --filename=/dev/vda --ioengine=libaio --direct=1 --time_based --runtime="$(long 7 5)" \
        --name=mixed --rw=randrw --bsrange=512-128k --blockalign=512 --iodepth=32 --size=8m \
        --name=fua --rw=randwrite --bs=4k --iodepth=8 --sync=1 --offset=256m --size=2m \
        --name=flush --rw=randwrite --bs=16k --iodepth=4 --fsync=8 --offset=384m --size=8m \
        --name=sequential --rw=write --bs=1k --iodepth=64 --offset=512m --size=8m &
    job=$!
    for second in $(seq 40); do
        sleep 1
        kill -0 $job 2>/dev/null || break
    done
    if kill -0 $job 2>/dev/null; then
        cat /sys/kernel/debug/block/vda/sched/state
        fail "$name: requests are queued, none is in the device, and no processor asks for the next"
    fi
    wait $job || { cat fio-log; fail "$name: fio"; }
    drained vda
    echo "$name: $(sed -n 's/^  vda: ios=\([0-9]*\)\/\([0-9]*\),.*/\1 reads, \2 writes/p' fio-log)"
done
elevator vda none
rmmod slow fairlift || fail "does not unload"
clean_log
