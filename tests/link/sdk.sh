#!/bin/sh
# sdk.sh BUILD SOURCE: installs the sdk of a build into a fresh folder, then configures, builds and runs tests/link/sdk with
# nothing but that folder.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --component sdk --prefix "$work/sdk" >"$work/log"
cmake -G Ninja -S "$2/tests/link/sdk" -B "$work/build" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_PREFIX_PATH=$work/sdk" >>"$work/log" 2>&1 &&
    cmake --build "$work/build" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/build/user"
