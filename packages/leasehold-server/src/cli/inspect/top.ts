import { Command } from 'commander'
import { type Duration, type Event, type KeyEntry, milliseconds, systemClock } from 'leasehold/port'
import {
  type Connection,
  type ConnectionFlags,
  withConnectionOptions,
  withStore,
} from '../connection.ts'
import { EXIT_HELP } from '../exit-codes.ts'
import { plural } from '../output.ts'
import { stopSignal } from '../stop-signal.ts'
import { keysTable, readKeys } from './ls.ts'
import { line } from './watch.ts'

interface TopFlags extends ConnectionFlags {
  readonly every: string
  readonly once?: boolean
}

/** Switches to the alternate screen without a cursor, and back. */
const ENTER = '\x1b[?1049h\x1b[?25l'
const LEAVE = '\x1b[?25h\x1b[?1049l'
const TO_START = '\x1b[H'
const CLEAR_LINE = '\x1b[K'
const CLEAR_REST = '\x1b[J'

/** In raw mode, an interrupt arrives as a key too. */
const QUIT: ReadonlySet<string> = new Set(['q', 'Q', '\x03', '\x1b'])

/** More than fits the screen, so that the keys with the most waiters are among them. */
const KEYS_MAX = 1000
const EVENTS_SHOWN = 5
/** Used if the terminal does not report its size. */
const ROWS = 24
const COLUMNS = 120

export function topCommand(): Command {
  return withConnectionOptions(new Command('top'))
    .description('Show the keys with the most waiters and the latest events until q is pressed.')
    .argument('[prefix]', 'only keys with this prefix', '')
    .option('--every <duration>', 'the time between updates', '1s')
    .option('--once', 'print one screen and exit')
    .addHelpText('after', EXIT_HELP)
    .action((prefix: string, flags: TopFlags) =>
      withStore(flags, (connection) => top(connection, prefix, flags)),
    )
}

/** Counts the events since the last update. */
class EventRates {
  claimed = 0
  released = 0
  expired = 0
  forced = 0
  readonly latest: Event[] = []

  add(event: Event): void {
    if (event.type === 'claimed') this.claimed++
    else if (event.end?.reason === 'expired') this.expired++
    else if (event.end?.reason === 'released') this.released++
    else if (event.end !== undefined) this.forced++
    this.latest.push(event)
    if (this.latest.length > EVENTS_SHOWN) this.latest.shift()
  }

  /** Returns the rates and resets the counts. */
  take(seconds: number): string {
    const { claimed, released, expired, forced } = this
    this.claimed = this.released = this.expired = this.forced = 0
    const rate = (count: number, name: string) => `${(count / seconds).toFixed(1)} ${name}/s`
    return [
      rate(claimed, 'claims'),
      rate(released, 'releases'),
      rate(expired, 'expiries'),
      rate(forced, 'revocations'),
    ].join('   ')
  }
}

async function top(connection: Connection, prefix: string, flags: TopFlags): Promise<void> {
  const every = Math.max(100, milliseconds(flags.every as Duration, '--every'))
  const tally = new EventRates()
  const { store } = connection
  const watch = store.watch({ prefix }, (notice) => {
    if (notice.type === 'events') for (const event of notice.events) tally.add(event)
  })
  let lookedAt = systemClock.now()
  const look = async () => {
    const asked = systemClock.now()
    const keys = await readKeys(store, prefix, KEYS_MAX)
    const now = systemClock.now()
    const rates = tally.take(Math.max(0.001, (now - lookedAt) / 1000))
    lookedAt = now
    const answered = `answered in ${(now - asked).toFixed(1)} ms`
    const count = keys.length === KEYS_MAX ? `${KEYS_MAX} keys or more` : plural(keys.length, 'key')
    const title = `leasehold top   ${connection.name}   ${count}   ${answered}`
    return [title, rates, '', ...screen(keys, tally.latest)]
  }
  try {
    if (flags.once) process.stdout.write(`${(await look()).join('\n')}\n`)
    else await onScreen(every, look)
  } finally {
    watch.close()
  }
}

function screen(keys: readonly KeyEntry[], events: readonly Event[]): string[] {
  const rows = (process.stdout.rows || ROWS) - EVENTS_SHOWN - 6
  const first = [...keys].sort((a, b) => b.count - b.holders - (a.count - a.holders))
  const lines = keysTable(first.slice(0, Math.max(1, rows))).split('\n')
  return [...lines, '', ...events.map(line)]
}

/** Redraws until it is stopped, and then restores the terminal. */
async function onScreen(every: number, look: () => Promise<string[]>): Promise<void> {
  const { stdin, stdout } = process
  const stop = stopSignal()
  let wake = () => {}
  let isOver = false
  const end = () => {
    isOver = true
    wake()
  }
  stop.signal.addEventListener('abort', end, { once: true })
  const pressed = (key: Buffer) => {
    if (QUIT.has(key.toString())) end()
  }
  if (stdin.isTTY) stdin.setRawMode(true).on('data', pressed).resume()
  stdout.write(ENTER)
  try {
    while (!isOver) {
      const width = stdout.columns || COLUMNS
      const lines = (await look()).map((each) => each.slice(0, width) + CLEAR_LINE)
      stdout.write(TO_START + lines.join('\r\n') + CLEAR_REST)
      await new Promise<void>((resolve) => {
        const timer = systemClock.timer(systemClock.now() + every, resolve, true)
        wake = () => {
          timer.cancel()
          resolve()
        }
        if (isOver) wake()
      })
    }
  } finally {
    stdout.write(LEAVE)
    if (stdin.isTTY) stdin.setRawMode(false).off('data', pressed).pause()
    stop.end()
  }
}
