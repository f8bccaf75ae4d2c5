# What DKMS gets: read by kernel/install and kernel/package/build, with $here set to the folder of src/ and core.o built.
# shellcheck shell=sh disable=SC2154 # set by who reads this

# stage DIR: the shim, the core's object, what the object was built from, and how to build both again.
stage() {
    mkdir -p "$1/rust/crates"
    for file in src probes headers lib.sh module.sh core.sh dkms/make dkms/rebuild-core; do
        cp -r "$here/$file" "$1/"
    done
    cp "$out/core.o" "$1/"
    version >"$1/version"
    sed "s/@VERSION@/$(version)/" "$here/dkms/dkms.conf" >"$1/dkms.conf"

    # The core's sources as a workspace of their own: what only tests need stays here.
    for crate in core kernel; do
        mkdir "$1/rust/crates/$crate"
        awk '/^\[/ { keep = !/^\[(dev-dependencies|\[bench)/ } keep' "$top/crates/$crate/Cargo.toml" >"$1/rust/crates/$crate/Cargo.toml"
        (cd "$top/crates/$crate" && find src -name '*.rs' ! -path '*/tests/*') | while read -r file; do
            mkdir -p "$1/rust/crates/$crate/$(dirname "$file")"
            cp "$top/crates/$crate/$file" "$1/rust/crates/$crate/$file"
        done
    done
    awk '/^members/ { print "members = [\"crates/core\", \"crates/kernel\"]"; next }
         /^\[/ { keep = /^\[(workspace|workspace.package|workspace.lints.*|workspace.dependencies|profile.release|profile.kernel)\]$/; deps = /dependencies/ }
         keep && (!deps || /^\[/ || /^fairlift-core/)' "$top/Cargo.toml" >"$1/rust/Cargo.toml"
    (cd "$1/rust" && cargo generate-lockfile --quiet --offline)
    cp "$top/LICENSE-MIT" "$top/LICENSE-APACHE" "$1/rust/"
}
