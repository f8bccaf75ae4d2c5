# Of the tags async requests take three quarters and no more, whatever nr_requests is and was.
# vm: -d 64M -t 600
. ./guest.sh

# A disk that is done with a request after an hour: what is sent stays.
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=2000000000 hw_queue_depth=1 submit_queues=1
disk=nullb0

# Tags taken just now, as blk-mq counts them.
busy() { cat /sys/kernel/debug/block/$disk/hctx*/sched_tags_bitmap >/dev/null; sed -n '/bitmap_tags/,$s/^busy=//p' /sys/kernel/debug/block/$disk/hctx0/sched_tags | head -n 1; }

load
for name in $(long "$OURS" "fl-noop fl-cfq"); do
    elevator $disk "$name"
    for requests in 256 1000 64 512; do
        echo $requests >/sys/block/$disk/queue/nr_requests || fail "nr_requests $requests"
        # Writeback is async; direct writes are not. More than the tags are on their way.
        fio --output=/dev/null --name=async --filename=/dev/$disk --rw=randwrite --bs=4k --size=200m --ioengine=psync --numjobs=2 \
            --fdatasync=0 --time_based --runtime=1000 &
        job=$!
        due=$((requests * 3 / 4)) most=0
        for second in 1 2 3 4 5 6 7 8 9 10 11 12; do
            sleep 0.5
            now=$(busy)
            [ "$now" -le "$most" ] || most=$now
            [ "$second" -gt 4 ] && [ "$most" -ge "$due" ] && break
            [ "$second" = 3 ] && sync &
        done
        echo "$name, nr_requests $requests: $most async tags taken (due $due)"
        [ "$most" -ge $((due * 97 / 100)) ] && [ "$most" -le $((due + 2)) ] || bad="$bad|$name: $most of $requests, due $due"
        kill $job
        # What it left dirty goes at once.
        elevator $disk none
        echo 0 >/dev/null
        wait $job
        elevator $disk "$name"
    done
done
elevator $disk none
rmmod fairlift || fail "does not unload"
clean_log
[ -z "$bad" ] || fail "depth: $bad"
