#!/bin/sh
# The hook `leasehold mcp guard` without starting Node, which takes most of its time: asks the
# `leasehold mcp` of the same agent host with curl. Node does it if there is no such process or no curl,
# if there are several, or if files are given as arguments.

run_in_node() {
  # npm puts a link to this file into a folder where the program is called `leasehold`.
  program=${0%/*}/leasehold.js
  [ -f "$program" ] || program=${0%/*}/leasehold
  exec "$program" mcp guard "$@"
}

case $* in
  '') route=hook ;;
  --take) route='hook?take' ;;
  *) run_in_node "$@" ;;
esac
command -v curl >/dev/null || run_in_node "$@"

# The sockets are named after the host and the process that listens, as in guard-sockets.ts.
socket=
pid=$PPID
while [ -z "$socket" ]; do
  case $pid in '' | 0 | *[!0-9]*) run_in_node "$@" ;; esac
  for file in "$HOME/.local/state/leasehold/guards/$pid-"*.sock; do
    agent=${file##*-}
    kill -0 "${agent%.sock}" 2>/dev/null || continue
    [ -z "$socket" ] || run_in_node "$@"
    socket=$file
  done
  if read -r stat 2>/dev/null <"/proc/$pid/stat"; then
    # The name of the program, in parentheses, may contain anything; the state and the parent follow.
    stat=${stat##*) ? }
    pid=${stat%% *}
  else
    pid=$(ps -o ppid= -p "$pid" | tr -d ' ')
  fi
done

curl -q -s -f --noproxy '*' --max-time 2 --unix-socket "$socket" -H Expect: --data-binary @- \
  "http://leasehold/$route" ||
  echo '{"systemMessage":"leasehold guard: the edit was not checked, because leasehold mcp does not answer"}'
