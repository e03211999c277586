#!/usr/bin/env bash
# Builds the engines that Debian does not have in the version we test with, from their Go modules,
# once, into a cache outside the repository. Does nothing without Go: their tests are then skipped.
#
#   scripts/go-engines.sh           all of them
#   scripts/go-engines.sh etcd      only that one
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/retry.sh

# name, version, module and main package
table='etcd 3.6.5 go.etcd.io/etcd/server/v3 go.etcd.io/etcd/server/v3
nats-server 2.12.15 github.com/nats-io/nats-server/v2 github.com/nats-io/nats-server/v2'

cache="${LEASEHOLD_ENGINES:-${XDG_CACHE_HOME:-$HOME/.cache}/leasehold/engines}"

# In a scratch module: `go install` refuses a module with replacements. The program appears in the
# cache complete or not at all, also if two build at once.
build() {
  cd "$scratch" &&
    go mod init scratch 2> /dev/null &&
    retry "fetch $2" go get "$2@v$1" 2> /dev/null &&
    CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o built "$3" &&
    mkdir -p "$cache" &&
    mv built "$4"
}

command -v go > /dev/null || exit 0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
while read -r name version module main; do
  program="$cache/$name-$version"
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  [ ! -x "$program" ] || continue
  echo "engines: building $name $version with Go"
  if ! (build "$version" "$module" "$main" "$program" < /dev/null); then
    echo "engines: $name $version could not be built with $(go version)" >&2
    [ "${CI:-}" != true ] || exit 1
  fi
  rm -rf "${scratch:?}"/*
done <<< "$table"
