# What was written is what is read: checksums, mixed sizes and depths, FUA, discard, flush.
# vm: -d 1G,queues=2 -t 1500
. ./guest.sh

load
modprobe scsi_debug dev_size_mb=128 lbpu=1 lbpws=1 max_luns=1 delay=0 ndelay=20000 max_queue=64 sector_size=512
modprobe sd_mod
sleep 2
sd=$(ls /sys/block | grep '^sd' | head -n 1)
[ -n "$sd" ] || fail "no scsi_debug disk"
megabytes=$(long 96 8)
for name in $(ours fl-deadline fl-cfq fl-fair); do
    elevator vda "$name"
    elevator "$sd" "$name"
    fio --output=fio-log --filename=/dev/vda --ioengine=libaio --direct=1 --size=${megabytes}m --verify=crc32c --verify_fatal=1 \
        --do_verify=1 --randseed=7 \
        --name=mixed --rw=randrw --bsrange=512-128k --blockalign=512 --iodepth=32 --offset=0 \
        --name=fua --rw=randwrite --bs=4k --iodepth=8 --sync=1 --offset=256m --size=2m \
        --name=flush --rw=randwrite --bs=16k --iodepth=4 --fsync=8 --offset=384m --size=8m \
        --name=sequential --rw=write --bs=1k --iodepth=64 --offset=512m --size=8m || { cat fio-log; fail "$name: data differ on vda"; }
    fio --output=fio-log --filename=/dev/$sd --ioengine=libaio --direct=1 --verify=crc32c --verify_fatal=1 --do_verify=1 \
        --name=mixed --rw=randwrite --bsrange=512-32k --blockalign=512 --iodepth=16 --size=8m \
        --name=trim --rw=randtrim --bs=64k --iodepth=4 --offset=64m --size=32m --verify=0 || { cat fio-log; fail "$name: data differ on $sd"; }
    fio --output=fio-log --filename=/dev/vda --bs=4k --name=buffered --rw=randwrite --size=${megabytes}m --offset=640m --end_fsync=1 \
        --verify=crc32c --verify_fatal=1 --do_verify=1 || { cat fio-log; fail "$name: buffered data differ"; }
    drained vda
    drained "$sd"
    echo "$name: same data"
done
elevator vda none
elevator "$sd" none
rmmod fairlift || fail "does not unload"
clean_log
