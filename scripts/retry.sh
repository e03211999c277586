# Source this file. `retry <name> <command...>` runs a command that may fail for a temporary reason,
# such as a busy registry. It tries up to four times with growing pauses.
retry() {
  local what=$1 pause=5 attempt
  shift
  for attempt in 1 2 3 4; do
    if "$@"; then return 0; fi
    if [ "$attempt" -eq 4 ]; then break; fi
    echo "$what: attempt $attempt failed, trying again in $pause s" >&2
    sleep "$pause"
    pause=$((pause * 3))
  done
  echo "$what: failed four times, giving up. If this was the network, run it again later." >&2
  return 1
}
