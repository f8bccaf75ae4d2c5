# Tenants against each other: whatever one cgroup does, it gets its due and no more, and another's weight and limit hold.
# vm: -i -d 64M -m 1536 -t 3600
. ./guest.sh

cgroups=/sys/fs/cgroup
seconds=$(long 20 8)
# What an attacker of weight 1 beside 1000 may get, percent.
bound=5

# group PATH WEIGHT: a cgroup, whose parent hands the controller on.
group() {
    echo +io >"$(dirname "$cgroups/$1")/cgroup.subtree_control"
    mkdir "$cgroups/$1" || fail "mkdir $1"
    echo "$2" >"$cgroups/$1/io.fairlift.weight" || fail "weight $2"
    made="$1 $made"
}

# in_group PATH COMMAND...: until it is killed.
in_group() {
    where=$1
    shift
    sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - "$cgroups/$where" "$@" >>loads 2>&1 &
    jobs="$jobs $!"
}

# load_in PATH [FIO OPTION...]
load_in() {
    where=$1
    shift
    in_group "$where" fio --name=load --filename=/dev/$disk --bs=4k --direct=1 --size=32m --norandommap --ioengine=libaio \
        --time_based --runtime=1000 "$@"
}

# End of an attack: no task, no cgroup is left.
clean_up() {
    kill $jobs 2>/dev/null
    for path in $made; do
        [ ! -e "$cgroups/$path/cgroup.kill" ] || echo 1 >"$cgroups/$path/cgroup.kill"
    done
    wait
    for path in $made; do
        patience=50
        until [ ! -e "$cgroups/$path" ] || rmdir "$cgroups/$path" 2>/dev/null || [ "$patience" = 0 ]; do
            sleep 0.1
            patience=$((patience - 1))
        done
    done
    made="" jobs=""
}

# Reads and writes of the cgroup and all below it, as the kernel counts them for itself when they are sent, and when that was.
sent_by() {
    stamp "$1/io.stat"
}

# Those of the cgroup itself that are done: the kernel counts flushes without data as writes.
done_of() {
    stamp "$1/io.fairlift.stat"
}

stamp() {
    cat /proc/uptime "$cgroups/$1" | sed 's/[a-z]*=//g' | awk -v disk="$number" '
        NR == 1 { time = $1 } $1 == disk { requests = $4 + $5 } END { print time, requests + 0 }'
}

# Until each has sent so many more: AMOUNT PATH...
until_sent() {
    amount=$1
    shift
    for path in "$@"; do
        patience=60 enough=$(($(sent_by "$path" | cut -d' ' -f2) + amount))
        while [ "$(sent_by "$path" | cut -d' ' -f2)" -lt "$enough" ] && [ "$patience" -gt 0 ]; do
            sleep 0.5
            patience=$((patience - 1))
        done
    done
    sleep 1
}

verdict() {
    if [ "$1" = 0 ]; then
        echo "PASS  $2"
    else
        echo "FAIL  $2"
        bad="$bad|$2"
    fi
}

# share_of WHAT ATTACKER VICTIM DUE BOUND: percent of what both get from now on; the attacker's is in the file part.
share_of() {
    for path in "$2" "$3"; do sent_by "$path"; done >before
    sleep "$seconds"
    line=$(for path in "$2" "$3"; do sent_by "$path"; done | paste before - | awk -v due="$4" -v bound="$5" '
        { got[NR] = $4 - $2 }
        END {
            sum = got[1] + got[2]; part = sum ? 100 * got[1] / sum : 100
            printf "%.1f\n", part >"part"
            printf "%s attacker %d, victim %d requests: %.1f %% (due %.1f, bound %s)", (part <= bound && got[2] ? "0" : "1"), got[1], got[2], part, due, bound
        }')
    verdict "${line%% *}" "$name: $1:${line#?}"
}

# rate_of WHAT PATH LIMIT: does it do that many a second? A machine that stands still makes it late; above is a fault.
rate_of() {
    done_of "$2" >before
    sleep "$seconds"
    line=$(done_of "$2" | paste before - | awk -v limit="$3" '{
        time = $3 - $1; got = $4 - $2; most = limit * time * 1.01 + 1; least = limit * time * 0.9 - 1
        printf "%s %d in %.1f s, %.1f a second (limit %d; from %d to %d)", (got <= most && got >= least ? "0" : "1"), got, time, got / time, limit, least, most
    }')
    verdict "${line%% *}" "$name: $1:${line#?}"
}

# A disk that does one request at a time, in 2 ms each, with a queue of 512 before it.
slow_disk() {
    modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=2000000 hw_queue_depth=1 submit_queues=1
    disk=nullb0
    number=$(cat /sys/block/$disk/dev)
}

# One that remembers, and does 64 requests at a time in 2 ms.
quick_disk() {
    modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=2000000 hw_queue_depth=64 submit_queues=1 memory_backed=1 gb=1
    disk=nullb0
    number=$(cat /sys/block/$disk/dev)
}

start() {
    elevator $disk none
    elevator $disk "$name"
    [ "$(cat /sys/block/$disk/queue/nr_requests)" -ge 256 ] || echo 512 >/sys/block/$disk/queue/nr_requests
}

# A disk with a cache that has to be flushed and without FUA, $1 requests at a time, in 2 ms each.
cached_disk() {
    mkdir /sys/kernel/config/nullb/cached && cd /sys/kernel/config/nullb/cached || fail "no configfs"
    for setting in size=64 memory_backed=1 cache_size=32 fua=0 irqmode=2 completion_nsec=2000000 hw_queue_depth=$1 submit_queues=1 \
        queue_mode=2 power=1; do
        echo "${setting#*=}" >"${setting%=*}" || fail "null_blk: $setting"
    done
    cd /host
    disk=$(ls /dev/nullb[0-9]* /dev/cached 2>/dev/null | head -n 1)
    disk=${disk#/dev/}
    number=$(cat "/sys/block/$disk/dev")
    [ "$(cat "/sys/block/$disk/queue/write_cache")" = "write back" ] && [ "$(cat "/sys/block/$disk/queue/fua")" = 0 ] ||
        fail "$disk needs no flushes"
}

# One sector, again and again.
same_sector() {
    start
    group a 1
    group v 1000
    load_in v --rw=randread --iodepth=32
    until_sent 100 v
    load_in a --rw=randread --bs=512 --size=512 --offset=1m --iodepth=32
    until_sent 1 a
    share_of "one sector, 32 at a time" a v 0.1 $bound
    clean_up
}

# Tasks that take up the table of contexts, then the attack with more. First without them, for a victim that has one request at a
# time: the emulated machine needs longer than group_idle (8 ms) for an answer now and then, and then the disk is not kept for it any
# more. That is the machine's, not the attack's, and grows with what else it has to do (2 to 10 % were seen): with the sleeping tasks the
# attacker may get no more than the bound above that.
many_tasks() {
    start
    group a 1
    group v 1000
    load_in a --rw=randread --iodepth=8 --numjobs=8
    load_in v --rw=randread --iodepth=1
    until_sent 10 v
    share_of "beside no sleeping tasks, one request at a time" a v 0.1 $((4 * bound))
    without=$(cat part)
    clean_up
    start
    group a 1
    group v 1000
    load_in v --rw=randread --iodepth=32
    until_sent 100 v
    # At its due it would take the attacker an hour.
    echo 10000 >$cgroups/a/io.fairlift.weight
    : >loads
    in_group a ./sleepers /dev/$disk "$1"
    patience=60
    until grep -q asleep loads || [ "$patience" = 0 ]; do
        sleep 1
        patience=$((patience - 1))
    done
    grep -q asleep loads || { verdict 1 "$name: no sleepers: $(cat loads)"; clean_up; return; }
    echo 1 >$cgroups/a/io.fairlift.weight
    load_in a --rw=randread --iodepth=8 --numjobs=8
    until_sent 1 a
    share_of "beside $1 sleeping tasks, victim was there before" a v 0.1 $bound
    load_in v --rw=randread --iodepth=32
    kill "$(echo "$jobs" | cut -d' ' -f2)"
    until_sent 100 v
    share_of "beside $1 sleeping tasks, victim came later" a v 0.1 $bound
    kill "${jobs##* }"
    load_in v --rw=randread --iodepth=1
    until_sent 10 v
    share_of "beside $1 sleeping tasks, victim came later, one request at a time" a v 0.1 \
        "$(awk -v without="$without" -v bound=$bound 'BEGIN { print without + bound }')"
    grep -H '^core' /sys/kernel/debug/block/$disk/sched/state | sed 's/.*requests/requests/'
    clean_up
}

# Cgroups that take up the table of groups, then somebody else's.
many_groups() {
    start
    group a 100
    echo +io >$cgroups/a/cgroup.subtree_control
    i=1
    while [ $i -le "$1" ]; do
        mkdir $cgroups/a/$i
        made="a/$i $made"
        (echo 0 >$cgroups/a/$i/cgroup.procs && exec dd if=/dev/$disk of=/dev/null bs=4k count=1 skip=$i iflag=direct 2>/dev/null)
        i=$((i + 1))
    done
    [ "$1" -le 256 ] || grep -q "^$number in_parent=1" $cgroups/a/$1/io.fairlift.stat || echo "$name: (a/$1 has a place of its own)"
    group v 10000
    load_in a/1 --rw=randread --iodepth=32
    load_in v --rw=randread --iodepth=32
    until_sent 100 v
    share_of "a with $1 children of weight 100 beside a later v of 10000" a v 1.0 $bound
    if echo "$number riops=10" >$cgroups/v/io.fairlift.max; then
        until_sent 1 v
        rate_of "limit of that v, reads" v 10
    else
        verdict 1 "$name: limit of that v is refused"
    fi
    # Where it found no place it asks again.
    echo "$number riops=max" >$cgroups/v/io.fairlift.max
    for path in $made; do
        case $path in a/2[0-9][0-9]) rmdir $cgroups/$path ;; esac
    done
    until_sent 100 v
    share_of "the same, some of the children gone" a v 1.0 $bound
    echo "$number riops=10" >$cgroups/v/io.fairlift.max || verdict 1 "$name: limit of that v is refused, some of the children gone"
    clean_up
}

# Eight tasks that write with PREFLUSH.
preflush_in() {
    i=0
    while [ $i -lt 8 ]; do
        in_group "$1" dd if=/dev/zero of=/dev/preflush bs=4k conv=notrunc
        i=$((i + 1))
    done
}

# Writes of a group that may do 10 a second, each with a flush before, after or behind it.
flushed_writes() {
    start
    echo "$disk: write_cache $(cat /sys/block/$disk/queue/write_cache), fua $(cat /sys/block/$disk/queue/fua)" >>disks
    group a 100
    echo "$number wiops=10" >$cgroups/a/io.fairlift.max || fail "io.fairlift.max"
    preflush_in a
    until_sent 10 a
    rate_of "writes with PREFLUSH" a 10
    kill $jobs; wait; jobs=""
    load_in a --rw=randwrite --ioengine=psync --sync=dsync --numjobs=8
    until_sent 10 a
    rate_of "writes with O_DSYNC" a 10
    kill $jobs; wait; jobs=""
    load_in a --rw=randwrite --ioengine=psync --fsync=1 --numjobs=8
    until_sent 10 a
    rate_of "writes with fsync" a 10
    clean_up
}

crypted=""
# others_flushes WEIGHT ATTACK...: who has to wait for whose flush? The longest fsync of a victim of weight 1000 while an attacker of
# that weight, or a limited one, writes with O_DSYNC or PREFLUSH, and what the attacker gets. The block layer sends no flush while data
# between two flushes is on its way: who holds that back holds back everybody's fsync.
others_flushes() {
    weight=$1
    shift
    for attack in "$@"; do
        start
        group a "$weight"
        group v 1000
        # The disk is busy with the victim's own reads.
        load_in v --rw=randread --iodepth=32
        until_sent 100 v
        case $attack in *second) echo "$number wiops=1" >$cgroups/a/io.fairlift.max ;; esac
        case $attack in
        *NOWAIT*) echo 1 ;;
        *) echo 0 ;;
        esac >/sys/module/preflush/parameters/nowait
        case $attack in
        *thread*) echo 1 ;;
        *) echo 0 ;;
        esac >/sys/module/preflush/parameters/thread
        case $attack in
        *dm-crypt*)
            echo "0 $(($(cat /sys/block/$disk/size) / 2)) crypt cipher_null-ecb - 0 /dev/$disk 0" | dmsetup create --noudevsync crypted || fail "dm-crypt"
            crypted=/sys/block/$(cd /sys/block && echo dm-*)
            in_group a fio --name=load --filename=/dev/${crypted##*/} --bs=4k --direct=1 --size=16m --time_based --runtime=1000 \
                --rw=randwrite --ioengine=psync --sync=dsync --numjobs=8
            ;;
        O_DSYNC*) load_in a --rw=randwrite --ioengine=psync --sync=dsync --numjobs=8 ;;
        PREFLUSH*) preflush_in a ;;
        esac
        sleep 2
        for path in a v; do done_of $path; done >before
        longest "$attack"
        line=$(for path in a v; do done_of $path; done | paste before - | awk -v bound=$bound '
            { got[NR] = $4 - $2 }
            END {
                part = 100 * got[1] / (got[1] + got[2])
                printf "%s attacker %d, victim %d requests: %.1f %% (bound %s)", (part <= bound && got[2] ? "0" : "1"), got[1], got[2], part, bound
            }')
        verdict "${line%% *}" "$name: beside $attack:${line#?}"
        sed -n 's/^turns_/turns /p; /^sent_at_once/p' /sys/kernel/debug/block/$disk/sched/state | paste -s -d,
        # What the attacker has on its way need not wait for its limit.
        elevator $disk none
        clean_up
        if [ -n "$crypted" ]; then
            # What dm-crypt's thread sends is not the attacker's, for the kernel: it counts for the root.
            written=$(awk '{ print $5 }' "$crypted/stat")
            verdict "$([ "$written" -gt 0 ]; echo $?)" "$name: dm-crypt wrote $written times"
            dmsetup remove --noudevsync --retry crypted || fail "dm-crypt is in use"
            crypted=""
        fi
    done
    elevator $disk "$name"
}

# The attacker has more on its way than there are tags, which are one pool for all: who finds none waits outside, in order of arrival.
# For a victim with one request at a time see above.
all_tags() {
    for depth in 32 1; do
        start
        group a 1
        group v 1000
        load_in v --rw=randread --iodepth=$depth
        until_sent 10 v
        most=$bound
        if [ $depth = 1 ]; then
            load_in a --rw=randread --iodepth=8 --numjobs=4
            until_sent 1 a
            share_of "32 of the tags taken, victim with 1 at a time" a v 0.1 $((4 * bound))
            most=$(awk -v without="$(cat part)" -v bound=$bound 'BEGIN { print without + bound }')
            kill "${jobs##* }"
        fi
        load_in a --rw=randread --iodepth=512 --numjobs=4
        sleep 3
        share_of "all $(cat /sys/block/$disk/queue/nr_requests) tags asked for, victim with $depth at a time" a v 0.1 "$most"
        clean_up
    done
}

# within WHAT SECONDS COMMAND...: is the command done in time?
within() {
    what=$1 bound_s=$2
    shift 2
    started=$(cut -d' ' -f1 /proc/uptime)
    "$@" >>loads 2>&1 &
    watched=$!
    patience=$((bound_s * 5 + 100))
    while kill -0 $watched 2>/dev/null && [ "$patience" -gt 0 ]; do
        sleep 0.2
        patience=$((patience - 1))
    done
    took=$(awk -v started="$started" '{ print $1 - started }' /proc/uptime)
    if kill -0 $watched 2>/dev/null; then done=", and not done"; else done=""; fi
    verdict "$(echo "$took $bound_s" | awk -v undone="$done" '{ print ($1 > $2 || undone != "") }')" "$name: $what: $took s$done (bound $bound_s)"
}

# Scheduler tags taken just now.
busy_tags() { sed -n 's/^busy=//p' /sys/kernel/debug/block/$disk/hctx0/sched_tags | head -n 1; }

# no_tags WHAT: what waits for a limit has none, or few; 256 there are.
no_tags() {
    busy=$(busy_tags)
    verdict "$([ "$busy" -le 64 ]; echo $?)" "$name: $1: $busy of 256 tags taken, $(grep -o 'held [0-9]*' /sys/kernel/debug/block/$disk/sched/state) (bound 64)"
}

# 170 children of a tenant that may read one byte a second each, beside the root's reads: a limit takes nobody's tags.
limited_crowd() {
    start
    echo 256 >/sys/block/$disk/queue/nr_requests
    group a 100
    echo +io >$cgroups/a/cgroup.subtree_control
    i=1
    while [ $i -le 170 ]; do
        mkdir $cgroups/a/$i
        made="a/$i $made"
        echo "$number rbps=1" >$cgroups/a/$i/io.fairlift.max 2>/dev/null || { echo "$name: (no place for a/$i)"; break; }
        (echo 0 >$cgroups/a/$i/cgroup.procs && exec dd if=/dev/$disk of=/dev/null bs=4k count=4 skip=$((i * 4)) iflag=direct 2>/dev/null) &
        (echo 0 >$cgroups/a/$i/cgroup.procs && exec dd if=/dev/$disk of=/dev/null bs=4k count=4 skip=$((i * 8)) iflag=direct 2>/dev/null) &
        (echo 0 >$cgroups/a/$i/cgroup.procs && exec dd if=/dev/$disk of=/dev/null bs=4k count=4 skip=$((i * 9)) iflag=direct 2>/dev/null) &
        i=$((i + 1))
    done
    sleep 2
    no_tags "170 cgroups at their limit"
    within "the root's 100 reads beside 170 cgroups at their limit" 5 dd if=/dev/$disk of=/dev/null bs=4k count=100 skip=4000 iflag=direct
    elevator $disk none
    clean_up
    elevator $disk "$name"
}

# Into a file, from the victim's cgroup.
hundred_mib() {
    sh -c 'echo 0 >"$1/cgroup.procs" && exec dd if=/dev/zero of="$2" bs=64k count=1600' - $cgroups/v "$1"
}

# A tenant at its limit with dirty pages, beside another's 100 MiB, on a file system that says whose pages they are.
limited_writeback() {
    start
    echo 256 >/sys/block/$disk/queue/nr_requests
    echo "+memory +io" >$cgroups/cgroup.subtree_control
    # Without ordered data: else a commit waits for the pages at the limit, and everybody for the commit, as with io.max.
    mkfs.ext4 -q -F /dev/$disk && mount -t ext4 -o data=writeback /dev/$disk /mnt || fail "mount"
    # What is dirty is soon written. How much may be dirty is left as it is: with little, the kernel itself makes others wait for the
    # tenant's pages (balance_dirty_pages), whoever holds these back.
    echo 50 >/proc/sys/vm/dirty_writeback_centisecs
    echo 50 >/proc/sys/vm/dirty_expire_centisecs
    group a 100
    group v 100
    started=$(cut -d. -f1 /proc/uptime)
    hundred_mib /mnt/before 2>>loads
    alone=$(($(cut -d. -f1 /proc/uptime) - started))
    echo "$name: 100 MiB alone: $alone s"
    echo "$number wbps=1" >$cgroups/a/io.fairlift.max || fail "io.fairlift.max"
    # Pages that are no neighbours: each is a request.
    in_group a fio --name=a --filename=/mnt/a --rw=randwrite --bs=4k --size=64m --number_ios=2000 --fallocate=none
    sleep 5
    no_tags "dirty pages at a limit"
    within "100 MiB of another cgroup beside dirty pages at a limit" "$((3 * alone + 5))" hundred_mib /mnt/v
    written=$(sed -n "s/^$number .*wbytes=\([0-9]*\) .*/\1/p" $cgroups/a/io.fairlift.stat)
    verdict "$([ "${written:-0}" -le 8388608 ]; echo $?)" "$name: the one at its limit wrote ${written:-0} bytes (bound 8 MiB)"
    echo "$number wbps=max" >$cgroups/a/io.fairlift.max
    kill $jobs $watched 2>/dev/null
    wait
    umount /mnt || fail "umount"
    jobs=""
    clean_up
}

# longest WHAT: the victim's fsyncs.
longest() {
    sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - $cgroups/v fio --output=fio-v --output-format=json --name=v --filename=/dev/$disk --bs=4k \
        --rw=randwrite --size=16m --ioengine=psync --direct=1 --fsync=1 --time_based --runtime="$seconds" || fail "fio"
    line=$(awk '/"sync" : \{/ { inside = 1 } inside && /"total_ios"/ { gsub(/[^0-9]/, ""); n = $0 }
        inside && /"max" :/ { gsub(/[^0-9]/, ""); printf "%s %d fsyncs, the longest %.0f ms (bound 1000)", ($0 + 0 <= 1e9 ? "0" : "1"), n, $0 / 1e6; exit }' fio-v)
    verdict "${line%% *}" "$name: fsync of weight 1000 beside its own reads and $1:${line#?}"
}

load
modprobe configfs && mount -t configfs configfs /sys/kernel/config || fail "no configfs"
# The short form leaves out c and f, whose one-at-a-time victims take minutes to tell from an emulated machine's own pauses.
parts=${PARTS:-$(long "a b c d e f g h i" "a b d e g h i")}
for part in $parts; do
    echo "-- $part"
    case $part in
    b) modprobe null_blk nr_devices=0; cached_disk 64; insmod ./preflush.ko disk=/dev/$disk || fail "preflush.ko" ;;
    h) modprobe -a null_blk ext4; rmmod null_blk; quick_disk ;;
    [ei]) modprobe null_blk nr_devices=0; cached_disk 1; insmod ./preflush.ko disk=/dev/$disk || fail "preflush.ko" ;;
    *) slow_disk ;;
    esac
    # Each part under one of ours in the short form, where fl-cfq and fl-fair share them out.
    case $part in
    [adgi]) names=$(ours fl-cfq) ;;
    *) names=$(ours fl-fair) ;;
    esac
    for name in $names; do
        case $part in
        a) same_sector ;;
        b) flushed_writes ;;
        c) many_tasks 1050 ;;
        d) many_groups 264 ;;
        e)
            if [ -n "$FULL" ]; then others_flushes 1 "nothing" "O_DSYNC" "PREFLUSH" "O_DSYNC through dm-crypt"; fi
            others_flushes 1 "PREFLUSH with NOWAIT" "PREFLUSH by a kernel thread"
            ;;
        f) all_tags ;;
        g) limited_crowd ;;
        h) limited_writeback ;;
        i)
            if [ -n "$FULL" ]; then others_flushes 1000 "O_DSYNC, 1 a second"; fi
            others_flushes 1000 "PREFLUSH, 1 a second"
            ;;
        esac
        drained $disk
    done
    elevator $disk none
    ! grep -q '^preflush' /proc/modules || rmmod preflush
    [ ! -e /sys/kernel/config/nullb/cached ] || rmdir /sys/kernel/config/nullb/cached
    rmmod null_blk || fail "null_blk does not unload"
done
rmmod fairlift || fail "does not unload"
clean_log
[ -z "$bad" ] || fail "tenants: $(echo "$bad" | tr '|' '\n')"
