# null_blk, random read of 4 KiB, depth 32: what an elevator costs. IOPS of every elevator, round by round.
# vm: -d 64M -t 3600
. ./guest.sh

rounds=${ROUNDS:-5}
seconds=${SECONDS_PER_RUN:-4}
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=1 completion_nsec=0 hw_queue_depth=64 submit_queues=1
load
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    for name in $ALL; do
        elevator nullb0 "$name"
        fio --output="cost-$name-$round.json" --output-format=json --name=r --filename=/dev/nullb0 --rw=randread --bs=4k \
            --ioengine=libaio --iodepth=32 --direct=1 --runtime="$seconds" --ramp_time=1 --time_based --size=1g --norandommap \
            --gtod_reduce=1 || fail "fio"
    done
done
elevator nullb0 none
rmmod fairlift || fail "does not unload"
clean_log
