# Random 4 KiB reads and writes on a disk that takes one at a time, in 0.1 ms, 128 in the queue: what a request costs at nomerges 0, 1 and 2. The machine's
# instructions are counted by function.
# vm: -d 64M -t 7200 -p nokaslr
. ./guest.sh

load
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=100000 hw_queue_depth=1 submit_queues=1
cat /proc/kallsyms >kallsyms

# ios COUNT
ios() {
    fio --output=fio.log --name=r --filename=/dev/nullb0 --rw=randrw --rwmixread=75 --bs=4k --ioengine=libaio --iodepth=128 --direct=1 \
        --number_ios="$1" --norandommap --gtod_reduce=1 || fail "fio"
}

for name in ${ELEVATORS:-mq-deadline bfq fl-noop fl-deadline fl-cfq fl-fair}; do
    elevator nullb0 "$name"
    echo 256 >/sys/block/nullb0/queue/nr_requests || fail "nr_requests"
    for level in 0 1 2; do
        echo $level >/sys/block/nullb0/queue/nomerges || fail "nomerges $level"
        ios 1000
        ./mark
        ios 4000
        ./mark
        ios 12000
        ./mark
        echo "$name $level" >>profiled
    done
    echo 0 >/sys/block/nullb0/queue/nomerges
    elevator nullb0 none
done
rmmod null_blk || fail "null_blk does not unload"
rmmod fairlift || fail "does not unload"
clean_log
