#!/usr/bin/env bash
# Installs the conformance tests of MCP into the cache of engines. They need Node 22, so that is installed
# beside them. packages/leasehold-server/test/agents/conformance.test.ts runs them if they are there.
set -euo pipefail
version=0.2.0-alpha.12
node="node-$(node -p 'process.platform + "-" + process.arch')@22"
cache="${LEASEHOLD_ENGINES:-${XDG_CACHE_HOME:-$HOME/.cache}/leasehold/engines}"
folder="$cache/mcp-conformance-$version"
[ ! -d "$folder" ] || exit 0
mkdir -p "$cache"
scratch=$(mktemp -d "$cache/installing-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
npm install --prefix "$scratch" --no-save --no-audit --no-fund --ignore-scripts \
  "$node" "@modelcontextprotocol/conformance@$version"
mv "$scratch" "$folder"
