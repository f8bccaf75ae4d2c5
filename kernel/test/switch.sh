# Loaded, selected and unloaded again and again under load, while all elevators take turns: no warning, hang, leak or lost I/O.
# vm: -d 1G -d 512M,queues=2 -t 6000
. ./guest.sh

rounds=$(long 100 2)
modprobe null_blk nr_devices=0
mkdir /sys/kernel/config 2>/dev/null
mount -t configfs configfs /sys/kernel/config 2>/dev/null
nullb() {
    mkdir "/sys/kernel/config/nullb/$1" && cd "/sys/kernel/config/nullb/$1" || fail "no null_blk"
    echo "$2" >submit_queues
    echo "$3" >hw_queue_depth
    echo 2 >irqmode
    echo 200000 >completion_nsec
    echo 1 >power
    cd /host || exit 1
}
nullb nullb0 2 64
nullb nullb1 1 1
disks="vda vdb nullb0 nullb1"

load
# In bursts of 16, so that some of the emulated processors' time is left for the changes.
for disk in $disks; do
    echo none >"/sys/block/$disk/queue/scheduler"
    fio --name="$disk" --filename="/dev/$disk" --rw=randrw --bsrange=512-64k --ioengine=libaio --iodepth=16 --direct=1 \
        --thinktime=100ms --thinktime_blocks=16 \
        --numjobs=2 --runtime=100000 --time_based --size=256m --output-format=normal --thread >"fio-$disk" 2>&1 &
    pids="$pids $!"
done
sleep 2

before=""
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    for name in $ALL; do
        for disk in $disks; do
            elevator "$disk" "$name"
        done
        # blktests block/021: the number of requests changes under each.
        for requests in 4 2048 64; do
            [ "$name" = none ] || echo "$requests" >/sys/block/vdb/queue/nr_requests || fail "nr_requests $requests"
        done
    done
    # blktests block/029: the number of hardware queues changes under ours, which puts every elevator away for a moment.
    elevator nullb0 fl-cfq
    echo 1 >/sys/kernel/config/nullb/nullb0/submit_queues
    echo 2 >/sys/kernel/config/nullb/nullb0/submit_queues
    for disk in $disks; do
        elevator "$disk" none
    done
    rmmod fairlift || fail "fairlift does not unload in round $round"
    load
    [ $((round % 10)) -ne 0 ] || echo "$round rounds"
    # The first rounds fill caches.
    [ "$round" -ne $((rounds / 4 + 1)) ] || before=$(kernel_memory)
done
after=$(kernel_memory)

# Still alive?
for pid in $pids; do
    kill -0 "$pid" || fail "fio ended"
done
kill -INT $pids
wait
grep -h 'err=' fio-*
[ "$(cat fio-* | grep -c 'err= 0')" = 8 ] || fail "fio has errors"

for disk in $disks; do
    elevator "$disk" fl-cfq
    fio --name=r --filename="/dev/$disk" --rw=randread --direct=1 --number_ios=50 --size=64m >/dev/null || fail "no I/O on $disk"
    sleep 0.2
    drained "$disk"
    elevator "$disk" none
done
grep -c . /proc/slabinfo >/dev/null
rmmod fairlift || fail "fairlift does not unload"
grep -E '^fl-' /proc/slabinfo && fail "caches are left"
echo "$rounds rounds of 9 elevators on 4 disks; kernel memory $before KiB after a quarter of them, $after KiB at the end"
[ "$after" -lt $((before + 4096)) ] || fail "kernel memory grew"
clean_log
