# io.fairlift.max: a group gets its rate and no more, alone and below a parent; one without a limit beside it is not held up.
# vm: -i -d 64M -t 1500
. ./guest.sh

cgroups=/sys/fs/cgroup
seconds=$(long 10 5)

# load_in GROUP [FIO OPTION...]: start a job there, which runs until killed.
load_in() {
    where=$1
    shift
    sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec fio "$@"' - "$cgroups/$where" --name=load --filename=/dev/$disk --bs=4k --direct=1 \
        --size=512m --norandommap --ioengine=libaio --time_based --runtime=1000 "$@" >/dev/null 2>&1 &
    jobs="$jobs $!"
}

stop_loads() {
    for path in a b p p/x p/y; do echo "$number rbps=max wbps=max riops=max wiops=max" >"$cgroups/$path/io.fairlift.max"; done
    kill $jobs 2>/dev/null
    wait
    jobs=""
}

limit() {
    echo "$number $2" >"$cgroups/$1/io.fairlift.max" || fail "io.fairlift.max of $1 does not take '$2'"
}

# When it is, and how many requests GROUP has had done.
done_of() {
    cat /proc/uptime "$cgroups/$1/io.fairlift.stat" | sed 's/[a-z]*=//g' | awk -v disk="$number" '
        NR == 1 { time = $1 } $1 == disk { done = $4 + $5 } END { print time, done + 0 }'
}

# What each GROUP gets done a second from now on: numbers in the order of the arguments.
rates() {
    for path in "$@"; do done_of "$path"; done >before
    sleep "$seconds"
    for path in "$@"; do done_of "$path"; done | paste before - | awk '{ printf "%d ", ($4 - $2) / ($3 - $1) + 0.5 }'
}

# Until each GROUP sends what it can.
under_way() {
    for path in "$@"; do
        patience=60 enough=$(($(done_of "$path" | cut -d' ' -f2) + 20))
        while [ "$(done_of "$path" | cut -d' ' -f2)" -lt "$enough" ] && [ "$patience" -gt 0 ]; do
            sleep 0.5
            patience=$((patience - 1))
        done
    done
    sleep 1
}

# Requests of a that its limit holds back.
held() {
    sed -n "s/^$number .* held=\([0-9]*\) .*/\1/p" $cgroups/a/io.fairlift.stat
}

# between WHAT RATE LEAST MOST: in percent of what? Above is a fault; below may be the machine standing still.
between() {
    echo "$name: $1: $2 a second (from $3 to $4)"
    [ "$2" -ge "$3" ] && [ "$2" -le "$4" ] || bad="$bad|$name: $1: $2"
}

# A disk that does one request at a time, in 2 ms each: some 450 a second.
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=2000000 hw_queue_depth=1 submit_queues=1
disk=nullb0
number=$(cat /sys/block/$disk/dev)
echo +io >$cgroups/cgroup.subtree_control
mkdir $cgroups/a $cgroups/b $cgroups/p
echo +io >$cgroups/p/cgroup.subtree_control
mkdir $cgroups/p/x $cgroups/p/y

load
for name in $(ours fl-fair); do
    elevator $disk "$name"
    # Of a disk with one place the kernel makes a queue of two.
    echo 256 >/sys/block/$disk/queue/nr_requests
    # Far more requests than the limit lets through, and than there are tags: they are not b's.
    load_in b --rw=randread --iodepth=8
    under_way b
    alone=$(rates b | tr -d ' ')
    limit a riops=50
    [ "$(cat $cgroups/a/io.fairlift.max)" = "$number rbps=max wbps=max riops=50 wiops=max" ] || fail "a: $(cat $cgroups/a/io.fairlift.max)"
    load_in a --rw=randread --iodepth=512
    under_way a
    set -- $(rates a b)
    between "reads, limit of 50" "$1" 42 52
    between "beside it, without a limit" "$2" $(((alone - 50) * 6 / 10)) 460
    # Another limit counts at once, and what is not limited is not held.
    limit a "riops=max wiops=1"
    set -- $(rates a b)
    between "reads, the limit taken away" "$1" 80 460
    stop_loads

    # 100 requests of 4 KiB a second for both together; x has no limit of its own, y one of 20.
    limit p wbps=409600
    limit p/y wiops=20
    load_in p/x --rw=randwrite --iodepth=16
    load_in p/y --rw=randwrite --iodepth=16
    under_way p/x p/y
    set -- $(rates p/x p/y)
    between "writes, both below 400 KiB/s" $(($1 + $2)) 85 103
    between "writes, the one that may have 20" "$2" 16 22
    stop_loads

    # Held requests do not keep the elevator from being changed.
    limit a wiops=1
    load_in a --rw=randwrite --iodepth=200
    patience=30
    while [ "$(held)" -lt 20 ] && [ "$patience" -gt 0 ]; do
        sleep 1
        patience=$((patience - 1))
    done
    held=$(held)
    [ "$held" -ge 20 ] || bad="$bad|$name: only $held requests held"
    before=$(cut -d. -f1 /proc/uptime)
    elevator $disk none
    took=$(($(cut -d. -f1 /proc/uptime) - before))
    echo "$name: left after $took s with $held requests held at 1 a second"
    [ "$took" -le 5 ] || bad="$bad|$name: left after $took s"
    kill $jobs
    wait
    jobs=""
done
rmmod fairlift || fail "does not unload"
clean_log
[ -z "$bad" ] || fail "limits: $bad"
