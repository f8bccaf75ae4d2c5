# What the scripts of this folder share; read by them, with $here set to the folder.
# shellcheck shell=sh

top=$(cd "$here/.." && pwd)
# Everything made here: below cargo's target directory, which is ignored.
out=${CARGO_TARGET_DIR:-$top/target}/kernel-module

die() {
    echo "$(basename "$0"): $*" >&2
    exit 2
}

# The kernel to build for: $KERNEL, else the running one, else the newest with headers.
kernel_release() {
    if [ -n "${KERNEL:-}" ]; then
        echo "$KERNEL"
    elif [ -e "/lib/modules/$(uname -r)/build" ]; then
        uname -r
    else
        for build in /lib/modules/*/build; do
            [ -e "$build" ] && basename "$(dirname "$build")"
        done | sort -V | tail -n 1
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
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of packages
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 ||
        die "cannot install:$missing"
}
