#!/usr/bin/env bash
# Installs the engines that the tests use, and a browser, from Debian's packages, Go modules and PyPI.
# Does nothing if they are installed. Starts none of them: each test starts its own, on its own port
# (packages/leasehold/test/engines).
#
#   scripts/engines.sh           all of them
#   scripts/engines.sh redis     only that one
#
# If one cannot be installed, the tests that need it are skipped, and say so. With CI=true that is a
# failure instead.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/retry.sh

if [ $# -eq 0 ]; then
  bash scripts/go-engines.sh
  bash scripts/python-engines.sh
fi

all=(redis postgres pgbouncer etcd zookeeper nats chromium spin gcc prometheus haproxy dig patroni
  nginx kubectl)
engines=("$@")
[ ${#engines[@]} -gt 0 ] || engines=("${all[@]}")

is_there() {
  case "$1" in
    redis) command -v redis-server > /dev/null ;;
    postgres) command -v initdb > /dev/null || ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 ;;
    pgbouncer) command -v pgbouncer > /dev/null || [ -x /usr/sbin/pgbouncer ] ;;
    etcd) command -v etcd > /dev/null ;;
    zookeeper) [ -e /usr/share/java/zookeeper.jar ] && command -v java > /dev/null ;;
    nats) command -v nats-server > /dev/null || [ -x /usr/sbin/nats-server ] ;;
    haproxy) command -v haproxy > /dev/null || [ -x /usr/sbin/haproxy ] ;;
    nginx) command -v nginx > /dev/null || [ -x /usr/sbin/nginx ] ;;
    prometheus) command -v promtool > /dev/null ;;
    patroni) command -v patroni > /dev/null && [ -d /usr/lib/python3/dist-packages/consul ] ;;
    chromium | spin | gcc | dig | kubectl) command -v "$1" > /dev/null ;;
    *) echo "engines: $1 is no engine: use one of ${all[*]}" >&2; exit 2 ;;
  esac
}

package_of() {
  case "$1" in
    redis) echo redis-server ;;
    postgres) echo postgresql ;;
    etcd) echo etcd-server ;;
    nats) echo nats-server ;;
    nginx) echo nginx-light ;;
    gcc) echo build-essential ;;
    dig) echo dnsutils ;;
    patroni) echo patroni python3-consul ;;
    kubectl) echo kubernetes-client ;;
    *) echo "$1" ;;
  esac
}

missing=()
packages=()
for engine in "${engines[@]}"; do
  if is_there "$engine"; then continue; fi
  missing+=("$engine")
  for package in $(package_of "$engine"); do packages+=("$package"); done
done
[ ${#missing[@]} -gt 0 ] || exit 0

give_up() {
  echo "engines: without ${missing[*]}: $1. Install ${packages[*]} to run their tests." >&2
  [ "${CI:-}" != true ] || exit 1
  exit 0
}

command -v apt-get > /dev/null || give_up 'this machine has no apt-get'
[ "$(id -u)" = 0 ] || give_up 'only root may install packages'

# A package of a server starts it, on its standard port, unless this file says no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi

export DEBIAN_FRONTEND=noninteractive
wait_for_others='DPkg::Lock::Timeout=300'
fetch() {
  apt-get update -qq -o "$wait_for_others" &&
    apt-get install -y -qq --no-install-recommends -o "$wait_for_others" "${packages[@]}" > /dev/null
}
echo "engines: installing ${packages[*]}"
retry "install ${packages[*]}" fetch || give_up 'they could not be installed'
