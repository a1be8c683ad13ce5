#!/bin/sh
# Installs libstandfast for C, C++ and Fortran: headers, shared and static library, pkg-config file,
# and below share/standfast the sources that a program compiles with its own compilers: the MPI
# adapter and the Fortran module.
#
#   cargo build --release -p standfast-c
#   bindings/c/install.sh PREFIX [BUILD]
#
# BUILD is where cargo left the libraries; target/release by default. With DESTDIR set, files go
# below it while the pkg-config file names PREFIX, as packagers expect.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: $0 PREFIX [BUILD]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
case $1 in
    /*) prefix=$1 ;;
    *) prefix=$PWD/$1 ;;
esac
build=${2:-${CARGO_TARGET_DIR:-$here/../../target}/release}
root=${DESTDIR:-}$prefix

for library in libstandfast_c.so libstandfast_c.a; do
    if [ ! -f "$build/$library" ]; then
        echo "$0: $build has no $library: run cargo build --release -p standfast-c first" >&2
        exit 1
    fi
done

# The header knows the version; the first part of it is that of the binary interface.
part() {
    sed -n "s/^#define SF_VERSION_$1 //p" "$here/include/standfast.h"
}
version=$(part MAJOR).$(part MINOR).$(part PATCH)
# What `rustc --print native-static-libs` asks for on Linux.
private="-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc"

mkdir -p "$root/include" "$root/lib/pkgconfig" "$root/share/standfast"
install -m 644 "$here/include/standfast.h" "$here/../mpi/standfast_mpi.h" \
    "$here/../preload/include/standfast_preload.h" "$root/include"
install -m 644 "$here/../mpi/standfast_mpi.c" "$here/../mpi/standfast_start.c" \
    "$here/../fortran/standfast.f90" "$here/../fortran/standfast_mpi.f90" "$root/share/standfast"
install -m 755 "$build/libstandfast_c.so" "$root/lib/libstandfast.so.$version"
ln -sf "libstandfast.so.$version" "$root/lib/libstandfast.so.$(part MAJOR)"
ln -sf "libstandfast.so.$(part MAJOR)" "$root/lib/libstandfast.so"
install -m 644 "$build/libstandfast_c.a" "$root/lib/libstandfast.a"
# Line tables are nine tenths of the files; names of functions stay.
if command -v strip > /dev/null; then
    strip --strip-debug "$root/lib/libstandfast.so.$version" "$root/lib/libstandfast.a"
fi
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" -e "s|@PRIVATE@|$private|" \
    "$here/standfast.pc.in" > "$root/lib/pkgconfig/standfast.pc"
echo "libstandfast $version is installed in $prefix"
