# Weights share out buffered writes: 2:1 with many tags and few, a tree; nothing is lost, forgotten or held for ever while all changes.
# vm: -i -d 64M -m 2048 -t 3600
. ./guest.sh

cgroups=/sys/fs/cgroup
seconds=$(long 20 5)
elevators=$(ours fl-fair)
load
echo "+io +memory" >$cgroups/cgroup.subtree_control
# 64 KiB at a time, in 2 ms: 32.8 MB/s.
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=2000000 hw_queue_depth=1 submit_queues=1 memory_backed=1 gb=1
modprobe ext4
disk=nullb0
number=$(cat /sys/block/$disk/dev)
echo 64 >/sys/block/$disk/queue/max_sectors_kb
mkfs.ext4 -q -F -E lazy_itable_init=1,nodiscard /dev/$disk && mount -t ext4 -o data=writeback,noinit_itable /dev/$disk /mnt || fail "mount"

# make_group PATH WEIGHT
make_group() {
    mkdir "$cgroups/$1" && echo "$2" >"$cgroups/$1/io.fairlift.weight" && echo 128M >"$cgroups/$1/memory.max" || fail "group $1"
}

# writer PATH: overwrites a file of 100 MiB again and again.
writer() {
    sh -c 'echo 0 >"$1/cgroup.procs" && while :; do dd if=/dev/zero of=/mnt/w-$2 bs=256k count=400 conv=notrunc 2>/dev/null; done' - \
        "$cgroups/$1" "$(echo "$1" | tr / -)" &
    jobs="$jobs $!"
}

# The kernel counts dirty pages anew only every 2 s, or when their numbers are read.
count() {
    while :; do
        cat $cgroups/*/memory.stat >/dev/null 2>&1
        sleep 0.1
    done
}

start() {
    jobs=""
    for path in "$@"; do writer "$path"; done
    count &
    counter=$!
}

end() {
    for path in "$@"; do echo 1 >"$cgroups/$path/cgroup.kill"; done
    kill $counter
    for job in $jobs $counter; do wait "$job"; done 2>/dev/null
    rm -f /mnt/w-*
    sync
}

# Bytes written for a group, by our own count.
written() {
    sed -n "s/^$number .*wbytes=\([0-9]*\).*/\1/p" "$cgroups/$1/io.fairlift.stat"
}

# compare PATH PATH LOW HIGH MB: what the one writes over what the other does, in hundredths, and how many MB/s both write at least.
compare() {
    one=$(written "$1") other=$(written "$2")
    sleep "$seconds"
    one=$(($(written "$1") - one)) other=$(($(written "$2") - other))
    ratio=$((100 * one / (other + 1)))
    echo "$elevator, $tags tags: $1 $((one / seconds / 1000)), $2 $((other / seconds / 1000)) KB/s: $ratio %"
    # On a kernel that checks itself the disk waits for the processor, and weights have nothing to share out.
    [ ! -e /proc/lockdep ] || return 0
    [ $ratio -ge "$3" ] && [ $ratio -le "$4" ] || fail "$elevator, $tags tags: $1 over $2: $ratio % ($3 to $4)"
    [ $((one + other)) -ge $((seconds * $5 * 1000000)) ] || fail "$elevator: the disk was idle"
}

for elevator in $elevators; do
    elevator $disk "$elevator"
    for tags in 64 8; do
        echo $tags >/sys/block/$disk/queue/nr_requests
        make_group heavy 200
        make_group light 100
        start heavy light
        sleep 3
        compare heavy light 180 220 24
        end heavy light
        rmdir $cgroups/heavy $cgroups/light || fail "a group is busy"
    done
done

# A tree: of the device's writes one branch gets three parts of four, and of these one child a third.
elevator=fl-cfq tags=64
elevator $disk $elevator
echo $tags >/sys/block/$disk/queue/nr_requests
make_group a 300
echo "+io +memory" >$cgroups/a/cgroup.subtree_control
make_group a/b 100
make_group a/c 200
make_group d 100
start a/b a/c d
sleep $(long 3 1)
# Shares in a tree are of the long form.
if [ -n "$FULL" ]; then
    seconds=$((2 * seconds))
    before=$(written d)
    compare a/c a/b 170 230 18
    d=$(($(written d) - before))
    share=$((100 * d / (d + one + other)))
    echo "d: $share % where 25 % is due"
    [ -e /proc/lockdep ] || { [ $share -ge 22 ] && [ $share -le 28 ]; } || fail "d: $share %"
fi

# All changes while they write: elevators, tags, groups that go with a thread in their lines, an elevator that gives up.
for elevator in $OURS mq-deadline none fl-cfq; do
    elevator $disk "$elevator"
    [ "$elevator" = none ] || echo 8 >/sys/block/$disk/queue/nr_requests
    sleep 0.5
done
waited=0
for round in 1 2 3 4 5 6; do
    make_group gone 1000
    writer gone
    sleep 0.5
    set -- $(sed -n 's/^writes_waiting \(.*\)/\1/p' /sys/kernel/debug/block/$disk/sched/state)
    waited=$((waited + $1))
    echo $((4 * round)) >/sys/block/$disk/queue/nr_requests
    echo 1 >$cgroups/gone/cgroup.kill
    until rmdir $cgroups/gone 2>/dev/null; do sleep 0.1; done
done
[ $waited -gt 0 ] || fail "no thread ever waited: the test shows nothing"
echo 1 >/sys/kernel/debug/block/$disk/sched/give_up
sleep 1
grep -q '^writes_waiting 0$' /sys/kernel/debug/block/$disk/sched/state || fail "threads wait without an elevator"
elevator $disk fl-deadline
end a/b a/c d
grep -q '^writes_waiting 0$' /sys/kernel/debug/block/$disk/sched/state || fail "threads wait though all is written"

# What was written is there.
make_group one 100
make_group two 1
lines=$(long 2000000 300000)
for group in one two; do
    sh -c 'echo 0 >"$1/cgroup.procs" && seq 1 "$3" >/mnt/$2' - $cgroups/$group $group "$lines" &
done
wait
sync
echo 3 >/proc/sys/vm/drop_caches
for group in one two; do
    [ "$(sha256sum </mnt/$group)" = "$(seq 1 "$lines" | sha256sum)" ] || fail "$group: not what was written"
done
umount /mnt
e2fsck -f -n /dev/$disk >fsck.log 2>&1 || { cat fsck.log; fail "the file system is damaged"; }
rmmod null_blk || fail "null_blk does not unload"
rmmod fairlift || fail "does not unload"
clean_log
