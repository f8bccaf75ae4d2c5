# Wrong values, full tables, wrong parameters: refused or degraded, said clearly, nothing broken.
# vm: -d 512M,queues=2 -d 512M -t 600
. ./guest.sh

# refused FILE WORDS LOG: writing WORDS is EINVAL, and the log says LOG.
refused() {
    name=${1##*/}
    dmesg -c >/dev/null
    if echo "$2" >"$1" 2>refusal; then
        fail "$name took '$2'"
    fi
    grep -q 'Invalid argument' refusal || fail "$name: not EINVAL: $(cat refusal)"
    dmesg | grep -q -- "$name: $3" || fail "$name: the log does not say '$3' but: $(dmesg)"
    echo "$name < '$2': EINVAL; $(dmesg | tail -n 1)"
}
refused_tunable() { refused "/sys/block/vda/queue/iosched/$1" "$2" "$3"; }
refused_in_group() { refused "$cgroups/a/$1" "$2" "$3"; }

insmod /host/fairlift.ko cfq_version=2.6.99 2>refusal && fail "took cfq_version=2.6.99"
dmesg | grep "cfq_version: '2.6.99' is none of" || fail "no word about cfq_version"

load contexts_max=4 requests_max=16
elevator vda fl-cfq
old=$(cat /sys/block/vda/queue/iosched/slice_idle)
refused_tunable slice_idle 99999999999 "'99999999999' is not a number from 0 to 4294967295 ms"
refused_tunable slice_idle eight ".*not a number from 0"
refused_tunable yield 2 "'2' is not a number from 0 to 1"
refused_tunable async_depth 0 "not a number from 1 to"
[ "$(cat /sys/block/vda/queue/iosched/slice_idle)" = "$old" ] || fail "slice_idle changed"
echo 3 >/sys/block/vda/queue/iosched/slice_idle && [ "$(cat /sys/block/vda/queue/iosched/slice_idle)" = 3 ] || fail "slice_idle did not become 3"
echo 64 >/sys/block/vda/queue/nr_requests && [ "$(cat /sys/block/vda/queue/iosched/async_depth)" = 48 ] ||
    fail "async_depth is not three quarters of 64 requests: $(cat /sys/block/vda/queue/iosched/async_depth)"
echo 256 >/sys/block/vda/queue/nr_requests
elevator vda fl-deadline
refused_tunable classes reads "'reads' is none of: direction sync-async full"
echo full >/sys/block/vda/queue/iosched/classes && [ "$(cat /sys/block/vda/queue/iosched/classes)" = full ] || fail "classes did not become full"
elevator vda fl-fair
refused_tunable turn_max 10001 "'10001' is not a number from 0 to 10000 ms"
refused_tunable depth many "'many' is not a number from 0 to 1024 requests"
echo 7 >/sys/block/vda/queue/iosched/depth && [ "$(cat /sys/block/vda/queue/iosched/depth)" = 7 ] || fail "depth did not become 7"
elevator vda none
elevator vda fl-fair
# What it has found out stands in debugfs, and of the others nothing.
fio --output=/dev/null --name=r --filename=/dev/vda --rw=randread --bs=4k --direct=1 --number_ios=50 || fail "fio"
found=/sys/kernel/debug/block/vda/sched/found
grep '^reads in the device while two tasks want it: [1-9][0-9]* requests$' $found && grep '^a read costs, 4 KiB: [1-9][0-9]* us$' $found || fail "found: $(cat $found)"
elevator vda fl-noop
[ -z "$(cat $found)" ] || fail "fl-noop has found: $(cat $found)"

# 40 tasks with 8 places (4 of them in reserve) and 512 requests with 16: everybody is served.
for name in $(ours fl-as fl-cfq); do
    elevator vda "$name"
    fio --output=fio-log --name=many --filename=/dev/vda --rw=randrw --bs=4k --ioengine=libaio --iodepth=32 --numjobs=40 --direct=1 \
        --size=256m --number_ios="$(long 100 30)" || { cat fio-log; fail "$name: full tables"; }
    [ "$(grep -c 'err= 0' fio-log)" = 40 ] || fail "$name: not all done"
    grep -H overflowed /sys/kernel/debug/block/vda/sched/state
    [ "$(sed -n 's/^overflowed //p' /sys/kernel/debug/block/vda/sched/state)" -gt 0 ] || fail "$name: the pool was never full"
    drained vda
done
elevator vda none
rmmod fairlift || fail "does not unload"

# Groups: one place and one in reserve, for three cgroups. The third counts as its parent's own, and says so.
cgroups=/sys/fs/cgroup
number=$(cat /sys/block/vda/dev)
load groups_max=1
elevator vda fl-cfq
echo +io >$cgroups/cgroup.subtree_control
mkdir $cgroups/a $cgroups/b $cgroups/c
refused_in_group io.fairlift.weight 0 "'0' is not a number from 1 to 10000"
refused_in_group io.fairlift.weight "$number 10001" "'10001' is not a number from 1 to 10000"
refused_in_group io.fairlift.leaf_weight none "'none' is not a number from 1 to 10000"
refused_in_group io.fairlift.ioprio_class best "'best' is none of: rt be idle"
refused_in_group io.fairlift.max "$number rbps=0" "'rbps=0' is none of rbps=, wbps=, riops=, wiops= with 'max' or a number from 1 to"
refused_in_group io.fairlift.max "$number riops=100 speed=9" "'speed=9' is none of rbps=, wbps=, riops=, wiops="
refused_in_group io.fairlift.max "$number" "'$number' is not a disk, MAJ:MIN, with a value after it"
refused_in_group io.fairlift.max "rbps=1000" "'rbps=1000' is not a disk, MAJ:MIN, with a value after it"
[ -z "$(cat $cgroups/a/io.fairlift.max)" ] || fail "io.fairlift.max was changed: $(cat $cgroups/a/io.fairlift.max)"
for group in a b c; do
    sh -c 'echo 0 >"$1/cgroup.procs" && exec fio --output=/dev/null --name=r --filename=/dev/vda --rw=randread --direct=1 --number_ios=50' - \
        $cgroups/$group || fail "$group: fio"
done
grep "^$number rbytes=204800 " $cgroups/a/io.fairlift.stat || fail "a: $(cat $cgroups/a/io.fairlift.stat)"
grep "^$number rbytes=204800 " $cgroups/b/io.fairlift.stat || fail "b: $(cat $cgroups/b/io.fairlift.stat)"
grep "^$number in_parent=1" $cgroups/c/io.fairlift.stat || fail "c: $(cat $cgroups/c/io.fairlift.stat)"
grep '^groups_in_parents 1' /sys/kernel/debug/block/vda/sched/state || fail "groups_in_parents"
echo "$number rbps=1000" >$cgroups/c/io.fairlift.max 2>refusal && fail "a limit was taken for which there is no room"
grep 'No space left' refusal || fail "not ENOSPC: $(cat refusal)"
dmesg | grep 'io.fairlift.max: the disk has no room for this group' || fail "no word about the room"
elevator vda mq-deadline
echo "$number rbps=1000" >$cgroups/a/io.fairlift.max 2>refusal && fail "a limit was taken under mq-deadline"
echo "under mq-deadline: $(cat refusal)"
elevator vda none
rmmod fairlift || fail "does not unload"
clean_log
