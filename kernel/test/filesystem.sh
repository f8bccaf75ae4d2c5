# ext4 on it with fs_mark, threads and fsync; fsck finds nothing.
# vm: -d 1G -t 1200
. ./guest.sh

load
files=$(long 1000 60)
for name in $(ours fl-as fl-fair); do
    elevator vda "$name"
    mkfs.ext4 -q -F /dev/vda || fail "mkfs"
    mount -t ext4 /dev/vda /mnt || fail "mount"
    fs_mark -d /mnt/a -d /mnt/b -s 16384 -n "$files" -S 1 -L 1 >fs_mark-log 2>&1 || { cat fs_mark-log; fail "fs_mark"; }
    fs_mark -d /mnt/c -d /mnt/d -s 4096 -n "$files" -S 0 -k >>fs_mark-log 2>&1 || fail "fs_mark without fsync"
    # The elevator changes under the mounted file system.
    fs_mark -d /mnt/e -s 16384 -n "$files" -S 1 -k >>fs_mark-log 2>&1 &
    for other in $ALL; do
        elevator vda "$other"
        sleep 0.3
    done
    wait
    umount /mnt || fail "umount"
    e2fsck -f -n /dev/vda >fsck-log 2>&1 || { cat fsck-log; fail "$name: fsck found something"; }
    echo "$name: $(awk '/^ *[0-9]+ +[0-9]+ +[0-9]+/ { print $4; exit }' fs_mark-log) files/s, fsck clean"
done
elevator vda none
rmmod fairlift || fail "does not unload"
clean_log
