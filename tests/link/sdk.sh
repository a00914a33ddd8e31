#!/bin/sh
# sdk.sh BUILD SOURCE: installs the sdk of a build into a fresh folder, then configures, builds and runs tests/link/sdk and
# examples/embed with nothing but that folder.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --component sdk --prefix "$work/sdk" >"$work/log"
readelf -d "$work"/sdk/lib*/libflexor.so | grep -q 'SONAME.*libflexor\.so\.[0-9]' || { echo "libflexor has no soname"; exit 1; }
for project in tests/link/sdk examples/embed; do
    cmake -G Ninja -S "$2/$project" -B "$work/$project" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_PREFIX_PATH=$work/sdk" >>"$work/log" 2>&1 &&
        cmake --build "$work/$project" >>"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
done
"$work/tests/link/sdk/user"
"$work/examples/embed/make_model" "$work/model.flx"
"$work/examples/embed/serve" "$work/model.flx" 4
