# Building the module around a core that is there: read by kernel/build and, without Rust, by DKMS, with $here set to the folder
# of src/ and probes/, $release to the kernel's and $dir to where it is built.
# shellcheck shell=sh disable=SC2154 # set by who reads this

# The kernel's headers, public and private. What the public ones can answer is asked before the private ones are fetched (139 MB).
find_headers() {
    headers=${HEADERS:-/lib/modules/$release/build}
    [ -e "$headers/Makefile" ] || die "no headers of kernel $release ($headers): install linux-headers-$release"
    mkdir -p "$dir/module"
    [ -e "$dir/private/complete" ] || ask "$(grep -L '^#include "' "$here"/probes/*.c)"
    "$here/headers" "$release" "$dir/private"
}

# What the kernel offers is found out by compiling, not by its version.
probe() {
    ask "$(ls "$here"/probes/*.c)"
}

# ask QUESTIONS: files of probes/.
ask() {
    rm -rf "$dir/probes" && mkdir "$dir/probes"
    # shellcheck disable=SC2086 # a list of files
    cp "$here/probes/Kbuild" $1 "$dir/probes/"
    [ ! -e "$dir/private" ] || cp -r "$dir/private" "$dir/probes/private"
    make -k -C "$headers" M="$dir/probes" modules >"$dir/probes/log" 2>&1 || true
    unsupported=""
    for question in $1; do
        name=$(basename "$question" .c)
        [ -e "$dir/probes/$name.o" ] && continue
        if line=$(grep '^// needed: ' "$question"); then
            unsupported="$unsupported
  ${line#// needed: }"
        else
            echo "without $(sed -n 's|^// optional: ||p' "$question")" >&2
        fi
    done
    [ -z "$unsupported" ] || die "kernel $release does not offer what the module needs:$unsupported
(details: $dir/probes/log)"
}

# module CORE: build $dir/module/fairlift.ko.
module() {
    cp "$here"/src/*.c "$here"/src/*.h "$here/src/Kbuild" "$dir/module/"
    rm -rf "$dir/module/private" && cp -r "$dir/private" "$dir/module/private"
    cp "$1" "$dir/module/core.o_shipped"
    touch "$dir/module/.core.o.cmd"
    journal=n
    [ -e "$dir/probes/journal.o" ] && journal=y
    groups=n
    [ -e "$dir/probes/groups.o" ] && groups=y
    make -C "$headers" M="$dir/module" FAIRLIFT_JOURNAL=$journal FAIRLIFT_GROUPS=$groups FAIRLIFT_VERSION="$(version)" modules >"$dir/log" 2>&1 ||
        { cat "$dir/log" >&2; die "the module does not build"; }
    # objtool does not know that Rust's handler of failed allocations does not return.
    grep -E 'warning|WARNING' "$dir/log" | grep -v 'the compiler differs from the one' |
        grep -v 'handle_alloc_error.*unexpected end of section' >&2 || true
}
