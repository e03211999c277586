#!/usr/bin/env bash
# Runs the tests with other releases of Node. The releases come from the package registry into a
# temporary folder, so that nothing needs to be installed on the machine. Leaves out long tests that
# only compute and give the same result on any release: simulations, models of the kernel, simulated
# workloads.
#
#   scripts/matrix.sh          Node 22 and 24
#   scripts/matrix.sh 24       only that one
#
# Then Bun and Deno run a client of a server.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/retry.sh

releases=("$@")
[ ${#releases[@]} -gt 0 ] || releases=(22 24)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

[ -d packages/leasehold/dist ] || npm run build

for release in "${releases[@]}"; do
  mkdir -p "$folder/$release"
  retry "fetch Node $release" npm install --prefix "$folder/$release" --no-package-lock --silent "node@$release"
  bin="$folder/$release/node_modules/node/bin"
  found=$("$bin/node" --version)
  case "$found" in
    "v$release".*) ;;
    *) echo "matrix: asked for Node $release and got $found" >&2; exit 1 ;;
  esac
  echo "matrix: tests with Node $found"
  # The tests start Node processes, by name and by the path of the current one.
  PATH="$bin:$PATH" "$bin/node" node_modules/vitest/vitest.mjs run \
    --exclude '**/test/sim/**' --exclude '**/test/kernel/model/**' --exclude '**/test/adaptive/**' \
    --exclude '**/test/stores/file/*/{crash,damage}.test.ts' \
    --exclude '**/recipes/pool/schedule/fairness.test.ts'
done

retry 'fetch Bun and Deno' npm install --prefix "$folder/others" --no-package-lock --silent bun deno
bin="$folder/others/node_modules/.bin"
node scripts/runtimes.js "$bin/bun run" "$bin/deno run --allow-all --node-modules-dir=manual"
