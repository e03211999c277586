import type { Event } from 'leasehold/port'
import type { Checker, Violated } from '../checker.js'
import type { Call, WatchRecord } from '../history.js'

/**
 * I16: a watch receives every event once, in order, without gaps, however often its connection
 * breaks; if it cannot, it is notified. Two watches of the same revisions received the same events.
 * All watches received the effects of all answered calls.
 */
export function watchesMissNothing(violated: Violated): Checker {
  return {
    name: 'I16 watches miss nothing',
    finish({ watches, calls, announced }) {
      for (const [at, watch] of watches.entries()) {
        const { name, open, from, events } = watch
        const seen = events.at(-1)?.revision ?? from
        if (open && seen < announced) {
          violated(`${name} watches and has seen nothing after ${seen}, of ${announced}`)
        }
        checkOrder(watch, violated)
        checkCalls(watch, calls, violated)
        for (const other of watches.slice(at + 1)) checkSame(watch, other, violated)
      }
    },
  }
}

function checkOrder({ name, events }: WatchRecord, violated: Violated): void {
  const seen = new Set<string>()
  let revision = 0
  for (const event of events) {
    const what = show(event)
    if (event.revision < revision) violated(`${name} saw ${what} after revision ${revision}`)
    if (seen.has(what)) violated(`${name} saw ${what} twice`)
    seen.add(what)
    revision = event.revision
  }
}

/** Every active watch received the effects of each answered call. */
function checkCalls(watch: WatchRecord, calls: readonly Call[], violated: Violated): void {
  const { name, from, events } = watch
  if (calls.length === 0 || events.length === 0) return
  const last = events[events.length - 1]!.revision
  const seen = new Set(events.map(({ type, key, token }) => `${type} ${key} ${token}`))
  for (const { kind, key, answer } of calls) {
    if ((kind !== 'claim' && kind !== 'release') || answer?.type !== 'done') continue
    if (answer.revision <= from || answer.revision > last) continue
    const what = `${kind === 'claim' ? 'claimed' : 'removed'} ${key} ${answer.token}`
    if (!seen.has(what)) violated(`${name} did not see "${what}" of revision ${answer.revision}`)
  }
}

function checkSame(one: WatchRecord, other: WatchRecord, violated: Violated): void {
  const after = Math.max(one.from, other.from)
  const until = Math.min(one.events.at(-1)?.revision ?? 0, other.events.at(-1)?.revision ?? 0)
  const common = ({ revision }: Event): boolean => revision > after && revision <= until
  const seen = one.events.filter(common)
  const alike = other.events.filter(common)
  const at = seen.findIndex((event, index) => !alike[index] || show(event) !== show(alike[index]))
  if (at === -1 && seen.length === alike.length) return
  const [a, b] = [seen[at], alike[at === -1 ? seen.length : at]]
  violated(
    `${one.name} saw ${a ? show(a) : 'nothing'} where ${other.name} saw ${b ? show(b) : 'nothing'}`,
  )
}

function show({ revision, type, key, token }: Event): string {
  return `"${type} ${key} ${token}" of revision ${revision}`
}
