#!/usr/bin/env bash
# Installs the system packages that a target needs and that are missing: deps.sh TARGET
#   build  a C compiler (for the codecs written in C)
#   test   also a C++ compiler (fuzzing), pkg-config (C examples), xfsprogs (power loss), Fortran
#          and two MPIs side by side, each called by its full name (mpicc.openmpi, mpicc.mpich)
# Debian and its relatives are served; elsewhere it says what is needed.
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin"

declare -A needs=([gcc]=gcc [cc]=gcc)
if [ "${1:-build}" = test ]; then
    needs+=([g++]=g++ [pkg-config]=pkg-config [mkfs.xfs]=xfsprogs [xfs_io]=xfsprogs)
    needs+=([gfortran]=gfortran)
    needs+=([mpirun.openmpi]=openmpi-bin [mpicc.openmpi]=libopenmpi-dev)
    needs+=([mpirun.mpich]=mpich [mpicc.mpich]=libmpich-dev)
fi

if ! command -v cargo >/dev/null; then
    echo "deps: Rust is missing; see https://rustup.rs" >&2
    exit 1
fi
missing=()
for command in "${!needs[@]}"; do
    command -v "$command" >/dev/null || missing+=("${needs[$command]}")
done
[ ${#missing[@]} -eq 0 ] && exit 0
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
