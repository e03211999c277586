import { type LeaseStore, systemClock, type Timer, type Token } from 'leasehold/port'
import { plural } from '../output.ts'

const FIRST_MS = 300
const AGAIN_MS = 2000

/**
 * Prints on standard error what a waiting command waits for, and again when that changes. Returns a
 * function that stops it.
 */
export function reportWait(store: LeaseStore, keys: readonly string[], holder: string): () => void {
  let printed = ''
  let timer: Timer | undefined
  let isOver = false
  /** The tokens of our claims, by key. Another process may have the same holder name. */
  const own = new Map<string, Token>()
  const look = async () => {
    const lines = await Promise.all(keys.map((key) => lineOf(store, key, holder, own)))
    if (isOver) return
    const text = lines.filter((line) => line !== undefined).join('')
    if (text !== printed) process.stderr.write(text)
    printed = text
    later(AGAIN_MS)
  }
  const later = (ms: number) => {
    timer = systemClock.timer(systemClock.now() + ms, () => void look())
  }
  later(FIRST_MS)
  return () => {
    isOver = true
    timer?.cancel()
  }
}

/** A line for a key that others hold; `undefined` if nothing is to be said about it. */
async function lineOf(
  store: LeaseStore,
  key: string,
  holder: string,
  own: Map<string, Token>,
): Promise<string | undefined> {
  const name = JSON.stringify(key)
  try {
    const { claims, holders, count } = await store.read({ key })
    const waiting = claims.slice(holders)
    // At the first look, ours is the latest of those with our name.
    const token = own.get(key) ?? waiting.filter((claim) => claim.holder === holder).at(-1)?.token
    const place = waiting.findIndex((claim) => claim.token === token)
    if (token === undefined || place < 0) return undefined
    own.set(key, token)
    const [first] = claims
    const others = holders > 1 ? ` and ${plural(holders - 1, 'other')}` : ''
    const by = JSON.stringify(first!.holder) + others
    return `leasehold: waiting for ${name}, held by ${by}; position ${place + 1} of ${count - holders} in the queue\n`
  } catch {
    // Without the right to read, only the wait itself is known.
    return `leasehold: waiting for ${name}\n`
  }
}
