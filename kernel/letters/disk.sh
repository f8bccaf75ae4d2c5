# For scripts in the guest: a disk of the lab, served in the guest itself, so that its time is the machine's. `. ./disk.sh`.
# shellcheck shell=sh

# serve MODEL DEPTH: $disk becomes a SCSI disk with the timing of that model, which takes DEPTH commands at a time. The server gives NBD, and the
# kernel's SCSI target gives that a depth, which NBD has not.
serve() {
    modprobe -a nbd tcm_loop target_core_iblock sd_mod
    [ -d /sys/kernel/config/target ] || mount -t configfs configfs /sys/kernel/config || fail "no configfs"
    cp /host/fairlift /host/attach /host/*.so.* /tmp/
    LD_LIBRARY_PATH=/tmp /tmp/fairlift serve --model "$1" --elevator none --socket /tmp/disk.sock 2>>/tmp/serve.log &
    server=$!
    until [ -S /tmp/disk.sock ]; do sleep 0.1; done
    /tmp/attach /tmp/disk.sock /dev/nbd0 || fail "no NBD"
    until [ "$(cat /sys/block/nbd0/size)" -gt 0 ]; do sleep 0.1; done
    echo none >/sys/block/nbd0/queue/scheduler
    target=/sys/kernel/config/target
    mkdir -p $target/core/iblock_0/disk && echo udev_path=/dev/nbd0 >$target/core/iblock_0/disk/control &&
        echo 1 >$target/core/iblock_0/disk/enable || fail "no target"
    # None of the models that are served takes FUA. The target would offer it, as a write with a flush behind it in one command.
    echo 0 >$target/core/iblock_0/disk/attrib/emulate_fua_write || fail "FUA"
    port=$target/loopback/naa.6001405000000001/tpgt_1
    mkdir -p $port/lun/lun_0 && echo naa.6001405000000002 >$port/nexus && ln -s $target/core/iblock_0/disk $port/lun/lun_0/disk || fail "no LUN"
    until ls -d /sys/block/sd* >found 2>/dev/null; do sleep 0.1; done
    disk=$(basename "$(head -n 1 found)")
    until [ -b "/dev/$disk" ]; do sleep 0.1; done
    echo "$2" >/sys/block/$disk/device/queue_depth || fail "depth"
    [ "$(cat /sys/block/$disk/queue/fua)" = 0 ] || fail "the disk takes FUA"
    number=$(cat /sys/block/$disk/dev)
}

# The server goes, and the disk with it.
unserve() {
    elevator $disk none
    rm $port/lun/lun_0/disk && rmdir $port/lun/lun_0 $port || fail "the LUN stays"
    rmdir "$(dirname $port)" $target/core/iblock_0/disk $target/core/iblock_0
    while [ -e /sys/block/$disk ]; do sleep 0.1; done
    kill $server
    wait $server
    rm -f /tmp/disk.sock
}
