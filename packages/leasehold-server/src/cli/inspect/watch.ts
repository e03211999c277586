import { Command } from 'commander'
import type { Event, LeaseStore, Notice, WatchTarget } from 'leasehold/port'
import { type ConnectionFlags, withConnectionOptions, withStore } from '../connection.ts'
import { EXIT_HELP } from '../exit-codes.ts'
import { integerOf } from '../number-options.ts'
import { at, jsonText, printable } from '../output.ts'
import { stopSignal } from '../stop-signal.ts'

interface WatchFlags extends ConnectionFlags {
  readonly from?: string
}

export function watchCommand(): Command {
  return withConnectionOptions(new Command('watch'))
    .description('Print events as they happen, until interrupted.')
    .argument('[prefix]', 'only keys with this prefix', '')
    .option('--from <revision>', 'start after this revision instead of now')
    .option('--json', 'print one line of JSON per event')
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
        const failure = printNotice(notice, isJson)
        if (failure !== undefined) reject(failure)
      })
    })
  } finally {
    stop.end()
  }
}

/** Prints the events of a notice. Returns an error if the watch has ended. */
function printNotice(notice: Notice, isJson: boolean): Error | undefined {
  if (notice.type === 'interrupted') return notice.error
  if (notice.type === 'compacted') {
    return new Error(
      `events before revision ${notice.oldest} are no longer available: use a later --from`,
    )
  }
  if (notice.type !== 'events') return undefined
  for (const event of notice.events) {
    process.stdout.write(`${isJson ? jsonText(event) : line(event)}\n`)
  }
  return undefined
}

export function line({ at: time, revision, type, key, holder, token, end }: Event): string {
  const how =
    end === undefined ? '' : ` ${[end.reason, end.by, end.why].filter(Boolean).join(', ')}`
  return printable(
    `${at(time)} ${revision} ${type} ${key} by ${holder}, token ${token}${how && `:${how}`}`,
  )
}
