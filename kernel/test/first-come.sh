# A queue that gives up its elevator in the middle of a load loses nothing, holds nobody for a limit, and says so once.
# vm: -d 256M,queues=2 -t 600
. ./guest.sh

cgroups=/sys/fs/cgroup
disk=vda
number=$(cat /sys/block/$disk/dev)
echo +io >$cgroups/cgroup.subtree_control
sched=/sys/kernel/debug/block/$disk/sched

load
mkdir $cgroups/a
for name in $(ours fl-deadline fl-fair); do
    elevator $disk "$name"
    echo "$number rbps=1 riops=1" >$cgroups/a/io.fairlift.max || fail "io.fairlift.max"
    sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - $cgroups/a fio --output=/dev/null --name=held --filename=/dev/$disk \
        --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=16 --number_ios=32 --size=64m &
    held=$!
    fio --output=fio-log --filename=/dev/$disk --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --do_verify=1 \
        --randseed=7 --name=mixed --rw=randrw --bsrange=512-64k --blockalign=512 --iodepth=32 --size=24m --offset=64m \
        --name=flush --rw=randwrite --bs=16k --iodepth=4 --fsync=8 --offset=128m --size=4m &
    verified=$!
    sleep 2
    grep -q 0 $sched/give_up || fail "$name gave up by itself"
    kill -0 $held || fail "$name: nobody is held"
    echo 1 >$sched/give_up
    grep -q 1 $sched/give_up || fail "$name does not give up"
    wait $verified || { cat fio-log; fail "$name: data differ"; }
    wait $held || fail "$name: who was held failed"
    fio --output=fio-log --name=after --filename=/dev/$disk --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=64 \
        --number_ios=2000 --size=64m || fail "$name: does not go on"
    drained $disk
    elevator $disk none
    echo "$name: first come, first served, and the same data"
done
elevator $disk fl-deadline
grep -q 0 $sched/give_up || fail "an elevator that was selected anew has given up"
elevator $disk none
rmdir $cgroups/a
[ "$(dmesg | grep -c 'first come, first served without weights')" = 1 ] || fail "it did not say so once"
rmmod fairlift || fail "does not unload"
clean_log
