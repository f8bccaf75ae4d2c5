# cgroup weights share out a slow disk within 5 %: 1:1, 1:3, 1:10, three levels, reads and sync writes; IDLE gives way; ioprio.
# vm: -i -d 64M -t 2700
. ./guest.sh

cgroups=/sys/fs/cgroup
judged=""
seconds=$(long 15 8)
# The short form sees some fifteen turns of the light group: one more or less is 7 %.
percent=$(long 5 10)

# Groups below the root of all cgroups: PATH WEIGHT..., parents first.
make_groups() {
    made=""
    while [ $# -gt 0 ]; do
        # A cgroup with children has no tasks of its own; its children need the controller.
        echo +io >"$(dirname "$cgroups/$1")/cgroup.subtree_control"
        mkdir "$cgroups/$1" || fail "mkdir $1"
        echo "$2" >"$cgroups/$1/io.fairlift.weight" || fail "weight $2"
        made="$1 $made"
        shift 2
    done
}

remove_groups() {
    for path in $made; do
        rmdir "$cgroups/$path" || fail "rmdir $path"
    done
}

# load_in GROUP [FIO OPTION...]: start a job there, which runs until killed.
load_in() {
    where=$1
    shift
    sh -c 'echo 0 >"$1/cgroup.procs" && shift && exec fio "$@"' - "$cgroups/$where" --name=load --filename=/dev/$disk --bs=4k --direct=1 \
        --size=512m --norandommap --ioengine=libaio --iodepth=60 --time_based --runtime=1000 "$@" >/dev/null 2>&1 &
    jobs="$jobs $!"
}

stop_loads() {
    kill $jobs 2>/dev/null
    wait
    jobs=""
}

# Requests that GROUP has sent, as the kernel counts them for itself; for the root (.), whose count is the whole disk's, its own that are done.
sent_by() {
    count=io.stat
    [ "$1" != . ] || count=io.fairlift.stat
    sed -n "s/^$number .*rios=\([0-9]*\) wios=\([0-9]*\) .*/\1 \2/p" "$cgroups/$1/$count" | awk '{ print $1 + $2 } END { if (!NR) print 0 }'
}

# Until each GROUP has all its requests on their way: from then on it sends one when one is done. (A job whose beginning is
# counted has 60 more than its due, of some hundreds.)
under_way() {
    for path in "$@"; do
        patience=60
        while [ "$(sent_by "$path")" -lt 60 ] && [ "$patience" -gt 0 ]; do
            sleep 0.5
            patience=$((patience - 1))
        done
    done
    sleep 2
}

# Device time that GROUP was charged, us.
time_of() {
    sed -n "s/^$number .* time_usec=\([0-9]*\) .*/\1/p" "$cgroups/$1/io.fairlift.stat"
}

all_times() {
    for path in "$@"; do time_of "$path"; done
}

all_sent() {
    for path in "$@"; do sent_by "$path"; done
}

total() {
    awk '{ for (i = 1; i <= NF; i++) sum += $i } END { print sum + 0 }'
}

# What each GROUP sends, and so gets done, from now on: numbers in the order of the arguments. Until the disk has done what it
# can in the time (450 requests a second), since the machine around it may stand still for a while.
counts() {
    before=$(all_sent "$@")
    enough=$(($(echo $before | total) + seconds * 450)) waited=0
    while [ "$(all_sent "$@" | total)" -lt "$enough" ] && [ "$waited" -lt $((10 * seconds)) ]; do
        sleep 1
        waited=$((waited + 1))
    done
    after=$(all_sent "$@")
    { echo $before; echo $after; } | awk 'NR == 1 { split($0, was) } NR == 2 { for (i = 1; i <= NF; i++) printf "%d ", $i - was[i] }'
}

# share RW "GROUP DUE..." GROUPS...: are the parts of the leaves those due? Of the requests, or if $judged is "time" of the device
# time they were charged.
share() {
    rw=$1 leaves=$2
    shift 2
    make_groups "$@"
    names=$(echo $leaves | awk '{ for (i = 1; i <= NF; i += 2) print $i }')
    for leaf in $names; do
        load_in "$leaf" --rw="$rw"
    done
    under_way $names
    before=$(all_times $names)
    got=$(counts $names)
    after=$(all_times $names)
    stop_loads
    remove_groups
    echo $leaves $got $before $after | awk -v what="$name, $rw" -v percent="$percent" -v judged="$judged" '
        function parts(word,    i, line, sum, dues, part, wanted, off) {
            for (i = 1; i <= n; i++) { sum += got[i]; dues += $(2 * i) }
            worst = 0
            for (i = 1; i <= n; i++) {
                part = sum ? 100 * got[i] / sum : 0; wanted = 100 * $(2 * i) / dues
                off = part / wanted - 1; if (off < 0) off = -off; if (off > worst) worst = off
                line = line sprintf(" %s %.1f (due %.1f)", $(2 * i - 1), part, wanted)
            }
            printf "%s: %% of %d %s:%s; off by %.1f %%\n", what, sum, word, line, 100 * worst
            return 100 * worst > percent
        }
        {
            n = NF / 5
            for (i = 1; i <= n; i++) got[i] = $(2 * n + i)
            requests = parts("requests")
            for (i = 1; i <= n; i++) got[i] = ($(4 * n + i) - $(3 * n + i)) / 1000
            time = parts("ms")
            exit judged == "time" ? time : requests
        }' || bad="$bad|$name $rw: $leaves"
}

# An IDLE group beside a best-effort one, and alone afterwards.
idle_gives_way() {
    make_groups be 100 idle 100
    echo idle >"$cgroups/idle/io.fairlift.ioprio_class"
    load_in be --rw=randread
    load_in idle --rw=randread
    under_way be idle
    set -- $(counts be idle)
    kill ${jobs% *}
    sleep 1
    alone=$(counts idle)
    stop_loads
    remove_groups
    echo "$name, class: be $1, idle $2 requests; idle alone $alone"
    [ "$(($2 * 50))" -lt "$1" ] && [ "$alone" -gt "$(($1 / 2))" ] || bad="$bad|$name: IDLE does not give way"
}

# Levels of best effort, and the idle class, in one group: sequential readers, whose turns are as long as their level says.
ioprio_is_ordered() {
    fio --output=fio-prio --output-format=json --filename=/dev/$disk --bs=4k --direct=1 --rw=read --size=100m --time_based \
        --runtime="$seconds" --name=be0 --prioclass=2 --prio=0 --name=be4 --offset=100m --prioclass=2 --prio=4 \
        --name=be7 --offset=200m --prioclass=2 --prio=7 --name=idle --offset=300m --prioclass=3 || fail "fio"
    set -- $(sed -n 's/^ *"total_ios" : \([0-9]*\),$/\1/p' fio-prio | awk 'NR % 4 == 1')
    echo "$name, ioprio: level 0 $1, 4 $2, 7 $3, idle class $4 requests"
    [ "$1" -gt "$2" ] && [ "$2" -gt "$3" ] && [ "$(($4 * 20))" -lt "$3" ] || bad="$bad|$name: ioprio"
}

# A disk that does one request at a time, in 2 ms each: null_blk, with nothing of the host in it.
modprobe null_blk nr_devices=1 queue_mode=2 irqmode=2 completion_nsec=2000000 hw_queue_depth=1 submit_queues=1
disk=nullb0
number=$(cat /sys/block/$disk/dev)
echo 1 >/sys/block/$disk/queue/rotational

load
for name in $(ours fl-deadline fl-fair); do
    elevator $disk "$name"
    echo 512 >/sys/block/$disk/queue/nr_requests
    # The machine around may need longer to answer a request than a group is waited for, and the group would lose its turn.
    echo 100 >/sys/block/$disk/queue/iosched/group_idle
    # Turns of a dozen requests: one more or less of them in the time of a run is little.
    echo 25 >/sys/block/$disk/queue/iosched/group_slice
    # What overran a turn is charged: else the light group's short turns, of a dozen requests, are one request too long each.
    echo 1 >/sys/block/$disk/queue/iosched/fairness
    # Requests, which the kernel counts, are shared out: when the machine around stands still, that is device time of whoever has
    # the turn, and its share in requests is off by as much.
    echo requests >/sys/block/$disk/queue/iosched/charge
    # The root's own tasks beside a cgroup.
    echo "$number 300" >$cgroups/io.fairlift.leaf_weight || fail "leaf_weight"
    share randread ". 3 a 1" a 100
    echo "$number default" >$cgroups/io.fairlift.leaf_weight
    [ "$(cat $cgroups/io.fairlift.leaf_weight)" = "default 100" ] || fail "leaf_weight: $(cat $cgroups/io.fairlift.leaf_weight)"
    if [ -z "$FULL" ]; then
        share randread "a 1 b 3" a 100 b 300
        continue
    fi
    for rw in randread randwrite; do
        share $rw "a 1 b 3" a 100 b 300
        share $rw "a 1 b 1" a 100 b 100
        share $rw "a 1 b 10" a 100 b 1000
        share $rw "b 18 a/c 3 a/d/e 1 a/d/f 2" a 100 b 300 a/c 100 a/d 100 a/d/e 100 a/d/f 200
    done
    echo time >/sys/block/$disk/queue/iosched/charge
    judged="time"
    share randread "b 18 a/c 3 a/d/e 1 a/d/f 2" a 100 b 300 a/c 100 a/d 100 a/d/e 100 a/d/f 200
    judged=""
    idle_gives_way
    case $name in fl-cfq | fl-fair) ioprio_is_ordered ;; esac
    drained $disk
done
elevator $disk none
rmmod fairlift || fail "does not unload"
clean_log
[ -z "$bad" ] || fail "shares: $bad"
