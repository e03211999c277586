import { Command } from 'commander'
import type { Event, LeaseStore, Notice, WatchTarget } from 'leasehold/port'
import { stopSignal } from './children.ts'
import { type ConnectionFlags, connecting, withStore } from './connection.ts'
import { EXIT_HELP } from './exit-codes.ts'
import { integerOf } from './numbers.ts'
import { at, plain } from './table.ts'

interface WatchFlags extends ConnectionFlags {
  readonly from?: string
}

export function watchCommand(): Command {
  return connecting(new Command('watch'))
    .description('Prints what happens on keys, as it happens, until it is interrupted.')
    .argument('[prefix]', 'only keys that begin with this', '')
    .option('--from <revision>', 'begins after this revision instead of now')
    .option('--json', 'prints a line of JSON for each event')
    .addHelpText('after', EXIT_HELP)
    .action((prefix: string, flags: WatchFlags) => {
      const from = flags.from === undefined ? undefined : integerOf('--from', flags.from, 0)
      return withStore(flags, ({ store }) => watch(store, { prefix, from }, flags.json === true))
    })
}

async function watch(store: LeaseStore, target: WatchTarget, isJson: boolean): Promise<void> {
  const stop = stopSignal()
  try {
    await new Promise<void>((resolve, reject) => {
      stop.signal.addEventListener('abort', () => resolve(), { once: true })
      store.watch(target, (notice) => {
        const failure = tell(notice, isJson)
        if (failure !== undefined) reject(failure)
      })
    })
  } finally {
    stop.end()
  }
}

/** Prints the events of a notice; answers with why there will be no more, where that is so. */
function tell(notice: Notice, isJson: boolean): Error | undefined {
  if (notice.type === 'interrupted') return notice.error
  if (notice.type === 'compacted') {
    return new Error(
      `the events before revision ${notice.oldest} are not kept: give a later --from`,
    )
  }
  if (notice.type !== 'events') return undefined
  for (const event of notice.events) {
    process.stdout.write(`${isJson ? JSON.stringify(event) : line(event)}\n`)
  }
  return undefined
}

export function line({ at: time, revision, type, key, holder, token, end }: Event): string {
  const how =
    end === undefined ? '' : ` ${[end.reason, end.by, end.why].filter(Boolean).join(', ')}`
  return plain(
    `${at(time)} ${revision} ${type} ${key} by ${holder}, token ${token}${how && `:${how}`}`,
  )
}
