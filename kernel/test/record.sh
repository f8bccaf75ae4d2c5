# What the module recorded, every call and answer, for the replay on the host (test/record.after).
# vm: -d 512M,iops=2000,queues=2 -m 1536 -t 900
. ./guest.sh

load record=120000
seconds=$(long 6 2)
for name in $(ours fl-noop fl-cfq fl-fair); do
    for pass in raw files; do
        elevator vda none
        elevator vda "$name"
        [ "$name" != fl-cfq ] || echo 1 >/sys/block/vda/queue/iosched/yield
        if [ "$pass" = raw ]; then
            fio --output=fio-log --filename=/dev/vda --direct=1 --runtime=$seconds --time_based --group_reporting \
                --name=random --rw=randread --bs=4k --ioengine=libaio --iodepth=4 --numjobs=3 --size=200m \
                --name=stream --rw=read --bs=16k --numjobs=2 --offset=200m --size=100m \
                --name=write --rw=randwrite --bs=8k --ioengine=libaio --iodepth=16 --prioclass=2 --prio=6 --size=200m \
                --name=idle --rw=read --bs=4k --prioclass=3 --offset=300m --size=50m || fail "fio"
        else
            mkfs.ext4 -q -F /dev/vda && mount -t ext4 /dev/vda /mnt || fail "mount"
            fs_mark -d /mnt/a -s 8192 -n 60 -S 1 >/dev/null 2>&1 &
            fio --output=fio-log --directory=/mnt --size=16m --name=w --rw=randwrite --bs=4k --fsync=8 --runtime=$seconds --time_based \
                --name=r --rw=read --bs=64k || fail "fio"
            wait
            umount /mnt
        fi
        cat /sys/kernel/debug/block/vda/sched/record >"$name-$pass.record"
        grep record_lost /sys/kernel/debug/block/vda/sched/state
        # The header and some thousand calls at least.
        [ "$(wc -l <"$name-$pass.record")" -gt 1000 ] || fail "$name: hardly anything recorded"
    done
done
elevator vda none
rmmod fairlift || fail "does not unload"
clean_log
