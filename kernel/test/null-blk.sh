# What blktests' block group does on null_blk, told anew: under ours the same comes out, line by line, as under mq-deadline.
# vm: -i -d 64M -m 1536 -t 1800
. ./guest.sh

# Numbers are blktests'. block/021 and block/029 are in `switch`. block/014, 015 and 030 inject faults, which the distribution's kernel
# does not have (CONFIG_BLK_DEV_NULL_BLK_FAULT_INJECTION); the others of the group want a SCSI disk, zones, partitions or a real disk.
modprobe configfs
cd "$(mktemp -d)" || exit 1
mount -t configfs configfs /sys/kernel/config 2>/dev/null
load

# with NAME PARAMETER...: null_blk, with the elevator NAME on its disks.
with() {
    name=$1
    shift
    modprobe null_blk queue_mode=2 "$@" || fail "null_blk $*"
    for path in /sys/block/nullb*; do elevator "${path##*/}" "$name"; done
}

without() { rmmod null_blk || fail "null_blk does not unload"; }

read_one() { dd if=/dev/nullb0 of=/dev/null bs=4096 iflag=direct count=1 status=none || echo "a read failed"; }
write_one() { dd if=/dev/zero of=/dev/nullb0 bs=4096 oflag=direct count=1 status=none || echo "a write failed"; }

# load_all FIO OPTION...: how many requests were done, and errors.
load_all() {
    fio --bs=4k --rw=randread --norandommap --direct=1 --size=64m --output-format=json --output=result "$@" >/dev/null || echo "fio failed"
    echo "$(value total_ios <result) reads, errors: $(sed -n 's/^ *"error" : \([0-9]*\),*$/\1/p' result | sort -u | paste -s -d ' ')"
}

# A driver that sleeps (block/006).
blocking() {
    with "$1" submit_queues=2 blocking=1
    load_all --name=r --filename=/dev/nullb0 --ioengine=psync --number_ios=2000
    load_all --name=r --filename=/dev/nullb0 --ioengine=libaio --iodepth=8 --numjobs=4 --group_reporting --number_ios=1000
    without
}

# Tags that disks share (block/010).
shared_tags() {
    with "$1" submit_queues=2 nr_devices=4 shared_tags=1
    jobs=""
    for disk in 0 1 2 3; do jobs="$jobs --name=r$disk --filename=/dev/nullb$disk"; done
    load_all --ioengine=libaio --iodepth=32 --number_ios=1000 --group_reporting $jobs
    without
}

# A signal for somebody who waits for a frozen queue (block/016).
frozen() {
    with "$1" irqmode=2 completion_nsec=2000000000
    read_one &
    sleep 0.5
    echo 64 >/sys/block/nullb0/queue/nr_requests &
    sleep 0.5
    dd if=/dev/nullb0 of=/dev/null bs=4096 iflag=direct count=1 2>dd.log &
    waits=$!
    sleep 0.5
    kill -USR1 $waits
    wait $waits
    echo "the one who got a signal ended with $?"
    grep -ci error dd.log
    wait
    without
}

# What is on its way (block/017).
in_flight() {
    with "$1" irqmode=2 completion_nsec=1000000000
    read_one &
    sleep 0.3
    echo "reads and writes $(cat /sys/block/nullb0/inflight), in all $(awk '{ print $9 }' /sys/block/nullb0/stat)"
    write_one &
    sleep 0.3
    echo "reads and writes $(cat /sys/block/nullb0/inflight), in all $(awk '{ print $9 }' /sys/block/nullb0/stat)"
    wait
    echo "reads and writes $(cat /sys/block/nullb0/inflight), in all $(awk '$3 == "nullb0" { print $12 }' /proc/diskstats)"
    without
}

# Times that the kernel counts, to the second (block/018). One after another: of several at once an elevator may hold some back, and they count longer.
counted_times() {
    with "$1" irqmode=2 completion_nsec=1000000000
    awk '{ print $4, $8 }' /sys/block/nullb0/stat >before
    for one in read_one write_one write_one; do
        $one
        awk '{ print $4, $8 }' /sys/block/nullb0/stat | paste -d ' ' before - |
            awk '{ printf "%.0f s of reads, %.0f s of writes\n", ($3 - $1) / 1000, ($4 - $2) / 1000 }'
    done
    without
}

# One hardware tag for each of several queues (block/020).
one_tag() {
    with "$1" irqmode=2 completion_nsec=200000 submit_queues=2 hw_queue_depth=1
    load_all --name=r --filename=/dev/nullb0 --ioengine=libaio --iodepth=256 --numjobs=2 --group_reporting --number_ios=500
    without
}

# Disks with shared tags that come and go (block/022).
come_and_go() {
    modprobe null_blk queue_mode=2 nr_devices=0 shared_tags=1 || fail "null_blk"
    for one in nullb0 nullb1; do
        mkdir /sys/kernel/config/nullb/$one
        {
            round=0
            while [ $round -lt 10 ]; do
                echo 1 >/sys/kernel/config/nullb/$one/power
                echo "$1" >/sys/block/$one/queue/scheduler || echo "no elevator"
                echo 0 >/sys/kernel/config/nullb/$one/power
                round=$((round + 1))
            done
            echo "$round times"
        } &
    done
    wait
    rmdir /sys/kernel/config/nullb/nullb*
    without
}

bad=""
for part in blocking shared_tags frozen in_flight counted_times one_tag come_and_go; do
    for scheduler in mq-deadline $(ours fl-fair); do
        $part "$scheduler" >"/tmp/$part.$scheduler" 2>&1
        grep -q '^FAILED' "/tmp/$part.$scheduler" && { cat "/tmp/$part.$scheduler"; exit 1; }
        if cmp -s "/tmp/$part.mq-deadline" "/tmp/$part.$scheduler"; then
            echo "$part, $scheduler: $(paste -s -d ';' "/tmp/$part.$scheduler")"
        else
            echo "$part, $scheduler: DIFFERS: $(paste -s -d ';' "/tmp/$part.$scheduler")"
            bad="$bad $part:$scheduler"
        fi
    done
done
[ -z "$bad" ] || fail "not as under mq-deadline:$bad"
rmmod fairlift || fail "does not unload"
clean_log
