# Two buffered writers of weight 2:1, with and without a random reader, on ext4 on a disk that takes 2 ms for each 64 KiB, one at a time, without seeks.
# The memory of each is limited, so that its dirty pages are. How many these are, the kernel counts anew only every 2 s, or when somebody reads
# them: COUNTS=fresh reads them ten times a second, COUNTS=stale leaves them alone.
# vm: -d 64M -m 2048 -t 7200
. ./guest.sh

cgroups=/sys/fs/cgroup
seconds=${SECONDS_PER_RUN:-10}
readers=${READERS:-0 1}
# nr_requests: as a SATA disk has them nearly, and as few as the kernel allows.
all_tags=${TAGS:-64 4}
counts=${COUNTS:-fresh}
load
echo "+io +memory" >$cgroups/cgroup.subtree_control
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=2000000 hw_queue_depth=1 submit_queues=1 memory_backed=1 gb=1
modprobe ext4
disk=nullb0
number=$(cat /sys/block/$disk/dev)
echo 64 >/sys/block/$disk/queue/max_sectors_kb
cd "$(mktemp -d)" || fail "no room"
mkfs.ext4 -q -F -E lazy_itable_init=1,nodiscard /dev/$disk && mount -t ext4 -o data=writeback,noinit_itable /dev/$disk /mnt || fail "mount"
[ "$readers" = 0 ] || fio --output=/dev/null --name=layout --filename=/mnt/reader --rw=write --bs=1m --size=128m --end_fsync=1 || fail "layout"

weigh() {
    case $1 in
    fl-*) echo "$3" >$cgroups/$2/io.fairlift.weight ;;
    bfq) echo "$3" >$cgroups/$2/io.bfq.weight ;;
    esac || fail "$1: weight of $2"
}

# By our own count of requests that are done where there is one: the kernel's counts bios, of up to 8 MiB.
written() {
    for group in heavy light; do
        file=$cgroups/$group/io.fairlift.stat
        grep -q "^$number .*wbytes" $file || file=$cgroups/$group/io.stat
        bytes=$(sed -n "s/^$number .*wbytes=\([0-9]*\).*/\1/p" $file)
        echo "${bytes:-0}"
    done
}

# Writes, sectors written, and milliseconds in which the disk had something to do.
disk_did() {
    awk '{ print $5 "\n" $7 "\n" $10 }' /sys/block/$disk/stat
}

# Until it is killed.
count() {
    while :; do
        cat $cgroups/heavy/memory.stat $cgroups/light/memory.stat >/dev/null
        sleep 0.1
    done
}

# one SCHEDULER READER TAGS
one() {
    elevator $disk "$1"
    echo "$3" >/sys/block/$disk/queue/nr_requests || fail "$3 tags"
    jobs=""
    for entry in heavy:200 light:100 reader:100; do
        mkdir $cgroups/${entry%:*} && weigh "$1" "${entry%:*}" "${entry#*:}"
    done
    for group in heavy light; do
        echo 128M >$cgroups/$group/memory.max
        sh -c 'echo 0 >"$1/cgroup.procs" && while :; do dd if=/dev/zero of=/mnt/$2 bs=256k count=400 conv=notrunc 2>/dev/null; done' - $cgroups/$group $group &
        jobs="$jobs $!"
    done
    counter=""
    if [ "$counts" = fresh ]; then
        count &
        counter=$!
    fi
    sleep $((seconds / 2))
    { written && disk_did; } >before
    if [ "$2" = 1 ]; then
        sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - $cgroups/reader fio --output="reader,$1,$3.json" --output-format=json \
            --name=r --filename=/mnt/reader --rw=randread --bs=4k --direct=1 --ioengine=psync --time_based --runtime=$seconds >>fio.log 2>&1 || fail "fio"
    else
        sleep $seconds
    fi
    { written && disk_did; } >after
    for group in heavy light; do echo 1 >$cgroups/$group/cgroup.kill; done
    [ -z "$counter" ] || kill $counter
    for job in $jobs $counter; do wait "$job"; done
    # Only now to the host: while the machine waits for that, its time runs away, and the writers with it.
    echo "$1 $2 $3 $(paste before after | awk -v seconds=$seconds '{ printf "%d ", ($2 - $1) / seconds }')" >>/host/figures
    [ ! -e "reader,$1,$3.json" ] || mv "reader,$1,$3.json" /host/
    # The next writers would only dirty again what is in memory in the name of groups that are gone, and no limit would hold them.
    rm -f /mnt/heavy /mnt/light
    sync
    for group in heavy light reader; do rmdir $cgroups/$group || fail "$group is busy"; done
    elevator $disk none
    echo "$1, reader $2, $3 tags: $(cut -d' ' -f1 /proc/uptime) s"
}

for name in ${ELEVATORS:-mq-deadline bfq $OURS}; do
    for tags in $all_tags; do
        for reader in $readers; do one "$name" "$reader" "$tags"; done
    done
done
umount /mnt
rmmod null_blk || fail "null_blk does not unload"
rmmod fairlift || fail "does not unload"
clean_log
