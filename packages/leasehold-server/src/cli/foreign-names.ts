import type { Command } from 'commander'

/** Names of other tools, separated by spaces, and our names for the same. */
type Names = readonly (readonly [theirs: string, ours: readonly string[]])[]

/** Options of redis-cli, etcdctl, consul, kubectl, flock and others. The first of ours that a command has is meant. */
export const FOREIGN_OPTIONS: Names = [
  ['--url --uri --addr --address --endpoint --endpoints', ['--server', '--host']],
  ['--http-addr --http-address --host --hostname -u -s', ['--server', '--host']],
  ['--bind --listen --ip --client --advertise-address', ['--host']],
  ['-p', ['--port', '--server']],
  ['--port', ['--server']],
  ['--data --data-dir --dir --folder --db --database --path -d', ['--store']],
  ['--auth --auth-token --user --password --pass --api-key --bearer -a', ['--access-token']],
  ['--cacert --ca-file --certificate-authority --tls-ca', ['--ca', '--tls-ca']],
  ['--client-cert --client-certificate --cert-file --tls-cert', ['--cert', '--tls-cert']],
  ['--client-key --key-file --tls-key', ['--key', '--tls-key']],
  ['--request-timeout --dial-timeout --command-timeout --http-timeout', ['--timeout']],
  ['--output --format --write-out -o -w -f', ['--json']],
  ['--name --owner --identity --candidate --client-id --who', ['--holder']],
  ['--lease --lease-time --expire --expires --expiry --session-ttl --ex --px', ['--ttl']],
  ['--try --no-wait --nowait --nonblock --nonblocking -n', ['--wait 0']],
  ['--max-wait --wait-timeout --acquire-timeout', ['--wait']],
  ['--reason --message --comment -m', ['--why']],
  ['--max --count', ['--limit']],
  ['--rev --revision --since', ['--from']],
  ['--grace-period --grace --delay', ['--after']],
  ['--interval', ['--every']],
  ['--schedule --cron', ['--at']],
  ['--timezone --tz', ['--time-zone']],
  ['--tags --label --labels', ['--tag']],
  ['--policy --policies --role --rights --permission', ['--right']],
  ['--verbose --debug --loglevel -v', ['--log-level', '--version']],
]

/** Commands of the same tools, and ours with their arguments. */
export const FOREIGN_COMMANDS: Names = [
  ['server start run agent up dev', ['serve']],
  ['list keys scan members kv', ['ls']],
  ['show describe read inspect holder owner', ['get <key>']],
  ['acquire flock mutex exec set put setnx take', ['lock <key> -- <command>']],
  ['campaign leader-elect leader', ['elect <name> -- <command>']],
  ['unlock del delete rm remove release force-unlock kill', ['revoke <key>']],
  ['monitor subscribe events tail follow', ['watch <prefix>']],
  ['status info health ping check operator', ['doctor']],
  ['catalog discover service instances', ['services <name>']],
  ['lease', ['leases']],
  ['election', ['elections <name>']],
  ['session', ['sessions <name>']],
  ['add new', ['create']],
  ['ls', ['list']],
  ['queue', ['waiters <key>']],
  ['log logs', ['history <key>']],
  ['acl auth tokens login user', ['access-token list']],
  ['snapshot save dump', ['backup <folder>']],
  ['schedule', ['cron <name> -- <command>']],
  ['version', ['--version']],
]

/**
 * Replaces Commander's guess by ours if the unknown name is one that users of other tools know.
 * `options` are the names of the options that are allowed in that place.
 */
export function withForeignNames(
  message: string,
  command: Command,
  options: readonly (string | undefined)[],
): string {
  const [, kind, typed] = /unknown (option|command) '([^'=]+)/.exec(message) ?? []
  if (typed === undefined) return message
  const ours =
    kind === 'command'
      ? commandFor(typed, command)
      : (argumentFor(typed, command) ??
        entryOf(FOREIGN_OPTIONS, typed).find((name) => options.includes(firstWord(name))))
  return ours === undefined ? message : `${message.split('\n', 1)[0]}\n(Use ${ours} instead.)\n`
}

function entryOf(table: Names, typed: string): readonly string[] {
  return table.flatMap(([theirs, ours]) => (theirs.split(' ').includes(typed) ? ours : []))
}

/** The arguments in the table are those of the commands of the program, not of `access-token`. */
function commandFor(typed: string, command: Command): string | undefined {
  const found = entryOf(FOREIGN_COMMANDS, typed).find(
    (ours) =>
      ours.startsWith('--') || command.commands.some((each) => each.name() === firstWord(ours)),
  )
  if (found === undefined || command.parent === null) return found && `leasehold ${found}`
  return `leasehold ${command.name()} ${firstWord(found)}`
}

function firstWord(name: string): string {
  return name.split(' ', 1)[0]!
}

/** For `watch --prefix jobs/`: the prefix is an argument. */
function argumentFor(typed: string, command: Command): string | undefined {
  const isNamed = command.registeredArguments.some((each) => typed === `--${each.name()}`)
  return isNamed ? `leasehold ${command.name()} ${typed.replace('--', '<')}>` : undefined
}
