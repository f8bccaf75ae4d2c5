# Tests 1 to 4 of the IO controller with cgroup v2, on the lab's model of a disk of 2009: ours beside bfq, io.max, io.cost and mq-deadline in one run.
# vm: -d 64M -m 4096 -t 7200
. ./guest.sh
. ./disk.sh

cgroups=/sys/fs/cgroup
load
echo +io >$cgroups/cgroup.subtree_control
serve sata7200-2009 31
# Not on the host: while the machine waits for that its time runs away, and the loads of a cell would not run together.
work=$(mktemp -d) && cp ./*.fio plan "$work/" && cd "$work" || fail "no room"

# weigh SCHEDULER GROUP WEIGHT LIMIT
weigh() {
    case $1 in
    fl-*) echo "$3" >$cgroups/$2/io.fairlift.weight ;;
    bfq) echo "$3" >$cgroups/$2/io.bfq.weight ;;
    io.cost) echo "$3" >$cgroups/$2/io.weight ;;
    io.max) echo "$number $4" >$cgroups/$2/io.max ;;
    mq-deadline) ;;
    esac || fail "$1: weight of $2"
}

# cell RUN SCHEDULER GROUP:WEIGHT:LIMIT...: the fio jobs of all groups at once.
cell() {
    run=$1 scheduler=$2
    shift 2
    case $scheduler in
    io.*) elevator $disk mq-deadline ;;
    *) elevator $disk "$scheduler" ;;
    esac
    if [ "$scheduler" = io.cost ]; then
        echo "$number $MODEL" >$cgroups/io.cost.model && echo "$number $QOS" >$cgroups/io.cost.qos || fail "io.cost"
    fi
    jobs=""
    for entry in "$@"; do
        group=${entry%%:*}
        mkdir $cgroups/$group || fail "mkdir $group"
        weigh "$scheduler" "$group" "$(echo "$entry" | cut -d: -f2)" "$(echo "$entry" | cut -d: -f3)"
    done
    for entry in "$@"; do
        group=${entry%%:*}
        sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"' - $cgroups/$group fio --output="run,$run,$scheduler,$group.json" \
            --output-format=json --filename=/dev/$disk --group_reporting --thread "$run,$group.fio" >>fio.log 2>&1 &
        jobs="$jobs $!"
    done
    for job in $jobs; do wait "$job" || fail "fio: $(tail -n 3 fio.log)"; done
    [ "$scheduler" != io.cost ] || echo "$number enable=0" >$cgroups/io.cost.qos
    for entry in "$@"; do
        group=${entry%%:*}
        case $scheduler in fl-*) grep "^$number " $cgroups/$group/io.fairlift.stat >"time,$run,$scheduler,$group" ;; esac
        rmdir $cgroups/$group || fail "$group is busy"
    done
    # The drive's write cache empties itself before the next run.
    elevator $disk none
    fio --output=/dev/null --name=flush --filename=/dev/$disk --rw=write --bs=4k --size=4k --ioengine=psync --fsync=1 || fail "flush"
    mv run,* /host/
    [ "${scheduler#fl-}" = "$scheduler" ] || mv time,* /host/
    echo "$run $scheduler: $(cut -d' ' -f1 /proc/uptime) s"
}

. ./plan
unserve
rmmod fairlift || fail "does not unload"
clean_log
