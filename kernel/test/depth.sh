# Async requests get three quarters of the tags, whatever nr_requests is and was before.
# vm: -i -d 64M -t 600
. ./guest.sh

# One request at a time, in 4 ms, each of one page: writeback is much faster.
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=4000000 hw_queue_depth=1 submit_queues=1
disk=nullb0
echo 4 >/sys/block/$disk/queue/max_sectors_kb

# Tags taken just now, as blk-mq counts them.
busy() { sed -n 's/^busy=//p' /sys/kernel/debug/block/$disk/hctx0/sched_tags | head -n 1; }

# Dirty pages and those on their way.
to_write() { awk '/^nr_dirty |^nr_writeback / { pages += $2 } END { print pages }' /proc/vmstat; }

echo 10 >/proc/sys/vm/dirty_writeback_centisecs
echo 10 >/proc/sys/vm/dirty_expire_centisecs
# Held open: the last who closes a disk waits for what is dirty, and is no thread of the kernel.
exec 3<>/dev/$disk
load
for name in $(ours fl-cfq); do
    elevator $disk "$name"
    # What throttles writeback above the elevator lets a slow disk have two.
    echo 0 >/sys/block/$disk/queue/wbt_lat_usec 2>/dev/null
    for requests in 256 $(long 1000 400) 64 $(long 512 ""); do
        echo $requests >/sys/block/$disk/queue/nr_requests || fail "nr_requests $requests"
        # Dirty pages that are no neighbours, and the kernel's own thread, not somebody who waits, to write them.
        echo 3 >/proc/sys/vm/drop_caches
        fio --output=/dev/null --name=pages --filename=/dev/$disk --rw=randwrite --bs=4k --size=200m --number_ios=$((requests * 3 / 2)) --fallocate=none
        most=0 due=$((requests * 3 / 4)) patience=200
        while [ "$patience" -gt 0 ] && [ "$(to_write)" -gt 0 ]; do
            now=$(busy)
            [ "$now" -le "$most" ] || most=$now
            sleep 0.1
            patience=$((patience - 1))
        done
        echo "$name: nr_requests $requests: $most tags taken by writeback (due $due)"
        [ "$most" -ge $((due * 95 / 100)) ] && [ "$most" -le $((due * 105 / 100)) ] || bad="$bad|$name: $most of $requests (due $due)"
    done
done
elevator $disk none
exec 3>&-
rmmod fairlift || fail "does not unload"
clean_log
[ -z "$bad" ] || fail "depth: $bad"
