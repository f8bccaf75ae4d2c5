# What the scripts of this folder share; read by them, with $here set to the folder.
# shellcheck shell=sh

top=$(cd "$here/.." && pwd)
# Everything made here: below cargo's target directory, which is ignored.
out=${CARGO_TARGET_DIR:-$top/target}/kernel-module

die() {
    echo "$(basename "$0"): $*" >&2
    exit 2
}

# The version of all that is here: what stage left, else the workspace's.
version() {
    cat "$here/version" 2>/dev/null || sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$top/Cargo.toml"
}

# The kernel to build for: $KERNEL, else the running one, else the newest with headers; none that vm/debug-kernel made, unless asked.
kernel_release() {
    if [ -n "${KERNEL:-}" ]; then
        echo "$KERNEL"
    elif [ -e "/lib/modules/$(uname -r)/build" ]; then
        uname -r
    else
        for build in /lib/modules/*/build; do
            [ -e "$build" ] && basename "$(dirname "$build")"
        done | grep -v -- -fairlift- | sort -V | tail -n 1
    fi
}

# Install Debian packages as root, else say which are missing.
packages() {
    missing=""
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
    done
    [ -z "$missing" ] && return 0
    command -v apt-get >/dev/null 2>&1 || die "needs what Debian has in the packages:$missing"
    [ "$(id -u)" = 0 ] || die "please install:$missing"
    echo "installing:$missing" >&2
    # Another apt-get that runs is waited for.
    log=$(mktemp)
    # shellcheck disable=SC2086 # a list of packages
    if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends \
        $missing; } >"$log" 2>&1; then
        tail -n 5 "$log" >&2
        rm -f "$log"
        die "cannot install:$missing"
    fi
    rm -f "$log"
}

# A compiler with the sources of core and alloc, which the module builds anew with the kernel's code model; empty if none.
rustc_with_sources() {
    for rustc in "${RUSTC:-}" rustc /usr/bin/rustc; do
        [ -n "$rustc" ] && command -v "$rustc" >/dev/null 2>&1 || continue
        if [ -e "$("$rustc" --print sysroot)/lib/rustlib/src/rust/library/core" ]; then
            echo "$rustc"
            return
        fi
    done
}

# The archive in Debian's installed source package of this kernel; empty if there is none of the very same version.
installed_source() {
    package=linux-source-$(echo "$1" | cut -d. -f1,2)
    headers_version=$(dpkg-query -W -f '${Version}' "linux-headers-$1" 2>/dev/null) || return 0
    source_version=$(dpkg-query -W -f '${Version}' "$package" 2>/dev/null) || return 0
    [ "$source_version" != "$headers_version" ] || echo "/usr/src/$package.tar.xz"
}

# test_module NAME DIRECTORY: build test/NAME/NAME.c and put it there.
test_module() {
    rm -rf "$out/$1" && cp -r "$here/test/$1" "$out/$1"
    make -C "/lib/modules/$(kernel_release)/build" M="$out/$1" modules >"$out/$1/log" 2>&1 || { cat "$out/$1/log" >&2; die "$1.ko does not build"; }
    cp "$out/$1/$1.ko" "$2/"
}
