# fsync per 4 KiB beside a sequential buffered and a random 4 KiB reader, on ext4, disk of 400 IOPS and 20 MB/s: every elevator in turn, round by round.
# vm: -d 3G,iops=400,bps=20000000 -t 7200
. ./guest.sh

rounds=${ROUNDS:-3}
seconds=${SECONDS_PER_RUN:-20}
load

# The files are laid out without the throttle's slowness mattering: once, and kept for all.
elevator vda none
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 /dev/vda && mount -t ext4 /dev/vda /mnt || fail "mount"
for file in sequential random; do
    fio --output=/dev/null --name="$file" --filename="/mnt/$file" --rw=write --bs=1m --size=640m --end_fsync=1 || fail "layout"
done

# one NAME [TUNABLE=VALUE,...]: mount afresh, run the three together, leave fio's results.
one() {
    name=$1 set_to=$2
    umount /mnt
    mount -t ext4 /dev/vda /mnt || fail "mount"
    elevator vda "$name"
    for tunable in $(echo "$set_to" | tr , ' '); do
        echo "${tunable#*=}" >"/sys/block/vda/queue/iosched/${tunable%=*}" || fail "$tunable"
    done
    echo 3 >/proc/sys/vm/drop_caches
    fio --output=fio.json --output-format=json --runtime="$seconds" --time_based --directory=/mnt \
        --name=fsync --filename=log --rw=write --bs=4k --size=64m --fsync=1 --fallocate=none --file_append=0 \
        --name=sequential --filename=sequential --rw=read --bs=128k --size=640m \
        --name=random --filename=random --rw=randread --bs=4k --size=640m --invalidate=1 || fail "fio"
    cp fio.json "fsync-$name${set_to:+,$set_to}-$round.json"
    # How often the probe saw somebody wait for the journal; of ours only.
    [ "$name" != fl-cfq ] || sed -n "s/^journal_waits/$name $set_to: &/p" /sys/kernel/debug/block/vda/sched/state
    # Free what was written, so that every run starts alike.
    rm -f /mnt/log
    elevator vda none
}

round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    for name in ${ELEVATORS:-$ALL}; do
        one "$name"
    done
    one fl-cfq yield=1
    # Shorter turns: who waits for the disk waits for fewer milliseconds of somebody else's.
    one fl-cfq slice_sync=20
    one fl-cfq slice_sync=20,yield=1
    [ -n "${ELEVATORS:-}" ] || one fl-deadline classes=full
    echo "round $round of $rounds"
done
umount /mnt
rmmod fairlift || fail "does not unload"
clean_log
