# Loads of fio alone, without cgroups, on devices of the lab that are served in the machine: ours beside none, mq-deadline, kyber and bfq.
# vm: -d 64M -m 4096 -t 7200
. ./guest.sh
. ./disk.sh

modprobe ext4
load
# Not on the host: while the machine waits for that its time runs away.
work=$(mktemp -d) && cp ./*.fio ./*.device.toml plan "$work/" 2>/dev/null
cd "$work" || fail "no room"
served=""

# device MODEL DEPTH ROTATIONAL MAX_KIB FILE:SIZE...: from here on the loads run on this one; with FILEs, on ext4 with these in it.
device() {
    [ -z "$served" ] || unuse
    serve "$1" "$2"
    served=$1 files=""
    echo "$3" >/sys/block/$disk/queue/rotational
    echo "$4" >/sys/block/$disk/queue/max_sectors_kb || fail "max_sectors_kb $4"
    shift 4
    [ $# -gt 0 ] || return 0
    files="$*"
    elevator $disk none
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 /dev/$disk && mount -t ext4 -o no_prefetch_block_bitmaps /dev/$disk /mnt || fail "mount"
    for file in "$@"; do
        [ "${file#*:}" = 0 ] || fio --output=/dev/null --name=layout --filename="/mnt/${file%:*}" --rw=write --bs=1m --size="${file#*:}" --end_fsync=1 ||
            fail "layout of $file"
    done
}

# profile VERSION: which kernel's CFQ fl-cfq is, from here on.
profile() {
    [ -z "$served" ] || unuse
    rmmod fairlift || fail "does not unload"
    insmod /host/fairlift.ko cfq_version="$1" || fail "cfq_version $1"
}

unuse() {
    [ -z "$files" ] || umount /mnt
    unserve
    served=""
}

# cell RUN SCHEDULER[:TUNABLE=VALUE] JOBS: fio's results become RUN,SCHEDULER.json.
cell() {
    if [ -n "$files" ]; then
        umount /mnt
        mount -t ext4 -o no_prefetch_block_bitmaps /dev/$disk /mnt || fail "mount"
        cd /mnt || fail "no /mnt"
    fi
    elevator $disk "${2%%:*}"
    settings=${2#"${2%%:*}"}
    for setting in $(echo "${settings#:}" | tr : ' '); do
        echo "${setting#*=}" >"/sys/block/$disk/queue/iosched/${setting%=*}" || fail "$2: $setting"
    done
    echo 3 >/proc/sys/vm/drop_caches
    sed -i "s|/dev/disk|/dev/$disk|" "$work/$3"
    fio --output="$work/result" --output-format=json "$work/$3" >>"$work/fio.log" 2>&1 || fail "fio: $(tail -n 3 "$work/fio.log")"
    [ ! -e /sys/kernel/debug/block/$disk/sched/found ] || cp /sys/kernel/debug/block/$disk/sched/found "$work/found,$1,$2"
    # What the run wrote goes, and the drive's write cache empties itself, before the next run.
    elevator $disk none
    if [ -n "$files" ]; then
        cd "$work" || fail "no room"
        for file in $files; do [ "${file#*:}" != 0 ] || rm -f "/mnt/${file%:*}"; done
    fi
    sync
    mv "$work/result" "/host/run,$1,$2.json"
    mv "$work"/found,* /host/ 2>/dev/null
    echo "$1 $2: $(cut -d' ' -f1 /proc/uptime) s"
}

. ./plan
unuse
rmmod fairlift || fail "does not unload"
clean_log
