# What a disk costs, and what happens when that is not to be had: the elevator is refused, and the disk goes on with the one it has.
# vm: -d 64M -t 600
. ./guest.sh

modprobe null_blk nr_devices=4 queue_mode=2 hw_queue_depth=64 submit_queues=1
load
for name in $OURS; do
    before=$(kernel_memory)
    for disk in nullb0 nullb1 nullb2 nullb3; do elevator $disk "$name"; done
    each=$((($(kernel_memory) - before) / 4))
    echo "$name: $each KiB a disk (bound 2560)"
    [ "$each" -le 2560 ] || bad="$bad|$name: $each KiB a disk"
    for disk in nullb0 nullb1 nullb2 nullb3; do elevator $disk mq-deadline; done
done

# More than the machine has.
echo 100000000 >/sys/module/fairlift/parameters/requests_max
fio --output=fio-log --name=load --filename=/dev/nullb0 --rw=randread --bs=4k --direct=1 --time_based --runtime="$(long 15 6)" &
load=$!
sleep 1
for name in $OURS; do
    dmesg -c >/dev/null
    started=$(cut -d. -f1 /proc/uptime)
    if echo "$name" >/sys/block/nullb0/queue/scheduler 2>refusal; then bad="$bad|$name: took 70 GB"; fi
    took=$(($(cut -d. -f1 /proc/uptime) - started))
    echo "$name: $(cat refusal) after $took s; $(dmesg | grep -m 1 fairlift); now $(cat /sys/block/nullb0/queue/scheduler)"
    dmesg | grep -q 'fairlift: no memory for' || bad="$bad|$name: no word about the memory"
    [ "$took" -le 10 ] || bad="$bad|$name: refused after $took s"
done
wait $load || bad="$bad|the load beside it failed"
echo 0 >/sys/module/fairlift/parameters/requests_max
elevator nullb0 fl-cfq
for disk in nullb0 nullb1 nullb2 nullb3; do elevator $disk none; done
rmmod fairlift || fail "does not unload"
clean_log
[ -z "$bad" ] || fail "memory: $bad"
