# Building the core's object: read by kernel/build and by the package's rebuild-core, with $here set to the folder of src/.
# shellcheck shell=sh disable=SC2154 # set by who reads this

# A compiler with the sources of core and alloc, which are built anew with the kernel's code model.
rust() {
    rustc=$(rustc_with_sources)
    [ -z "$rustc" ] || return 0
    packages rustc-web rust-web-src
    rustc=/usr/bin/rustc
}

# core SOURCES: the core as one object, $out/core.o, with only what the shim calls.
core() {
    flags="-Crelocation-model=static -Ccode-model=kernel -Cno-redzone=y -Zfunction-return=thunk-extern"
    flags="$flags -Zcf-protection=branch -Zretpoline -Zretpoline-external-thunk"
    # Else calls of the shim go through a GOT, which the module loader does not know.
    flags="$flags -Zplt=yes -Zdirect-access-external-data=yes -Cembed-bitcode=yes"
    (cd "$1" && RUSTC_BOOTSTRAP=1 RUSTC=$rustc RUSTFLAGS=$flags CARGO_TARGET_DIR=$out/core cargo build --quiet \
        --locked --profile kernel -p fairlift-kernel --lib --no-default-features --target x86_64-unknown-none \
        -Zbuild-std=core,alloc -Zbuild-std-features=compiler-builtins-mem)
    roots=$(sed -n 's/^[a-z].*[ *]\(fairlift_[a-z_]*\)(.*/-u \1/p' "$here/src/core.h")
    # shellcheck disable=SC2086 # a list of options
    ld -r --gc-sections $roots "$out/core/x86_64-unknown-none/kernel/libfairlift_kernel.a" -o "$out/core.o"
    objcopy -R .llvmbc -R .llvmcmd -R .comment "$out/core.o"
}
