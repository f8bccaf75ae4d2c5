# Wrong values, full tables, wrong parameters: refused or degraded, said clearly, nothing broken.
# vm: -d 512M,queues=2 -d 512M -t 600
. ./guest.sh

refused() {
    dmesg -c >/dev/null
    if echo "$2" >"/sys/block/vda/queue/iosched/$1" 2>refusal; then
        fail "$1 took '$2'"
    fi
    grep -q 'Invalid argument' refusal || fail "$1: not EINVAL: $(cat refusal)"
    dmesg | grep -q -- "$3" || fail "$1: the log does not say '$3' but: $(dmesg)"
    echo "$1 < '$2': EINVAL; $(dmesg | tail -n 1)"
}

insmod /host/fairlift.ko cfq_version=2.6.99 2>refusal && fail "took cfq_version=2.6.99"
dmesg | grep "cfq_version: '2.6.99' is none of" || fail "no word about cfq_version"

load contexts_max=4 requests_max=16
elevator vda fl-cfq
old=$(cat /sys/block/vda/queue/iosched/slice_idle)
refused slice_idle 99999999999 "slice_idle: '99999999999' is not a number from 0 to 4294967295 ms"
refused slice_idle eight "not a number from 0"
refused yield 2 "yield: '2' is not a number from 0 to 1"
refused async_depth 0 "async_depth: not a number from 1 to"
[ "$(cat /sys/block/vda/queue/iosched/slice_idle)" = "$old" ] || fail "slice_idle changed"
echo 3 >/sys/block/vda/queue/iosched/slice_idle && [ "$(cat /sys/block/vda/queue/iosched/slice_idle)" = 3 ] || fail "slice_idle did not become 3"
elevator vda fl-deadline
refused classes reads "classes: 'reads' is none of: direction sync-async full"
echo full >/sys/block/vda/queue/iosched/classes && [ "$(cat /sys/block/vda/queue/iosched/classes)" = full ] || fail "classes did not become full"

# 40 tasks with 4 places and 512 requests with 16: everybody is served.
for name in $OURS; do
    elevator vda "$name"
    fio --output=fio-log --name=many --filename=/dev/vda --rw=randrw --bs=4k --ioengine=libaio --iodepth=32 --numjobs=40 --direct=1 \
        --size=256m --number_ios=100 || { cat fio-log; fail "$name: full tables"; }
    [ "$(grep -c 'err= 0' fio-log)" = 40 ] || fail "$name: not all done"
    grep -H overflowed /sys/kernel/debug/block/vda/sched/state
    [ "$(sed -n 's/^overflowed //p' /sys/kernel/debug/block/vda/sched/state)" -gt 0 ] || fail "$name: the pool was never full"
    drained vda
done
elevator vda none
rmmod fairlift || fail "does not unload"
clean_log
