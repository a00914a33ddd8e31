#!/bin/sh
# exports.sh LIBRARY: fails if the library exports a name outside flexor, or needs more than the system's C++ run time.
set -eu
foreign=$(nm -DC --defined-only "$1" | cut -d' ' -f3- | grep -vE '^((vtable|typeinfo|typeinfo name|VTT|non-virtual thunk to|guard variable) for |.* )?flexor(::|_)|flexor::' || true)
needed=$(objdump -p "$1" | awk '$1 == "NEEDED" { print $2 }' |
    grep -vE '^(libstdc\+\+|libgcc_s|libc|libm|libdl|librt|libpthread|libasan|libubsan|libtsan|ld-linux.*)\.so' || true)
if [ -n "$foreign$needed" ]; then
    printf 'exported, not ours:\n%s\nneeded, not expected:\n%s\n' "$foreign" "$needed"
    exit 1
fi
echo "$(nm -D --defined-only "$1" | wc -l) exported names, all of flexor"
