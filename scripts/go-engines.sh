#!/usr/bin/env bash
# Builds the engines that Debian does not have in the version we test with, from their Go modules,
# once, into a cache outside the repository. A program of our own, which uses a module, is built
# again when it changes. Does nothing without Go: their tests are then skipped.
#
#   scripts/go-engines.sh           all of them
#   scripts/go-engines.sh etcd      only that one
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/retry.sh

# name, version, module, and main package or folder with our own
table='etcd 3.6.5 go.etcd.io/etcd/server/v3 go.etcd.io/etcd/server/v3
nats-server 2.12.15 github.com/nats-io/nats-server/v2 github.com/nats-io/nats-server/v2
consul 1.16.1 github.com/hashicorp/consul github.com/hashicorp/consul
client-go-elect 0.34.1 k8s.io/client-go packages/leasehold-server/test/gateways/kubernetes/elect
client-go-migration 0.34.1 k8s.io/client-go packages/leasehold-server/test/gateways/kubernetes/migration'

# Consul 1.16 is the last under the Mozilla Public License. Its module replaces parts of itself by folders
# that are not in the module, so the releases of these parts are used, with these checksums. It must not
# be built with two releases of go-msgpack, which it excludes itself.
consul_sums='github.com/hashicorp/consul/api v1.24.0 h1:u2XyStA2j0jnCiVUU7Qyrt8idjRn4ORhK6DlvZ3bWhA=
github.com/hashicorp/consul/api v1.24.0/go.mod h1:NZJGRFYruc/80wYowkPFCp1LbGmJC9L8izrwfyVx/Wg=
github.com/hashicorp/consul/envoyextensions v0.4.1 h1:7s3IXE+qmwjPbZPva+8BjHLrpkFrFkNE+z/6X/O6PQc=
github.com/hashicorp/consul/envoyextensions v0.4.1/go.mod h1:PkLAV99qviACPT7v8Pn7d/vacZixC8/4fuZpR7Rf7vA=
github.com/hashicorp/consul/proto-public v0.4.1 h1:k1RWFQo3uvtaLyC8ZEdP2jJOCiNp/7Tp8zz9MsjAxc8=
github.com/hashicorp/consul/proto-public v0.4.1/go.mod h1:ENwzmloQTUPAYPu7nC1mli3VY0Ny9QNi/FSzJ+KlZD0=
github.com/hashicorp/consul/sdk v0.14.1 h1:ZiwE2bKb+zro68sWzZ1SgHF3kRMBZ94TwOCFRF4ylPs=
github.com/hashicorp/consul/sdk v0.14.1/go.mod h1:vFt03juSzocLRFo59NkeQHHmQa6+g7oU0pfzdI1mUhg=
github.com/hashicorp/consul/troubleshoot v0.3.1 h1:M3sAzWRT3xXseRoa/Z8q8Kf+Ws0J1xN8nLDj0dC2UIw=
github.com/hashicorp/consul/troubleshoot v0.3.1/go.mod h1:QjmTNmf2Umo/mqTjW+EhDAHEG2l15B81CkcxhF4GALU='

cache="${LEASEHOLD_ENGINES:-${XDG_CACHE_HOME:-$HOME/.cache}/leasehold/engines}"

# The checksums of everything that Consul needs: those in its own module, and those above.
prepare_consul() {
  local module=$1
  go mod edit -exclude github.com/hashicorp/go-msgpack@v1.1.5 \
    -exclude github.com/hashicorp/go-msgpack@v1.1.6 &&
    retry "fetch $module" go mod download "$module" &&
    { cat "$(go env GOMODCACHE)/$module/go.sum" && echo "$consul_sums"; } > go.sum
}

# In a scratch module: `go install` refuses a module with replacements. The program appears in the
# cache complete or not at all, also if two build at once.
build() {
  local main="$3" own=false
  if [ -d "$main" ]; then
    cp "$main"/*.go "$scratch" || return
    main=. own=true
  fi
  cd "$scratch" &&
    go mod init scratch 2> /dev/null &&
    { [ "$2" != github.com/hashicorp/consul ] || prepare_consul "$2@v$1"; } &&
    retry "fetch $2" go get "$2@v$1" 2> /dev/null &&
    { [ $own = false ] || retry "fetch what it imports" go get . 2> /dev/null; } &&
    CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o built "$main" &&
    mkdir -p "$cache" &&
    { [ $own = false ] || rm -f "$cache/$name-"*; } &&
    mv built "$4"
}

command -v go > /dev/null || exit 0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
while read -r name version module main; do
  program="$cache/$name-$version"
  [ ! -d "$main" ] || program+="-$(cat "$main"/*.go | cksum | cut -d ' ' -f 1)"
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  [ ! -x "$program" ] || continue
  echo "engines: building $name $version with Go"
  if ! (build "$version" "$module" "$main" "$program" < /dev/null); then
    echo "engines: $name $version could not be built with $(go version)" >&2
    [ "${CI:-}" != true ] || exit 1
  fi
  rm -rf "${scratch:?}"/*
done <<< "$table"
