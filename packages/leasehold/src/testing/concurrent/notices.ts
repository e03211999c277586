import type { Event, Notice } from '../../port/index.ts'
import type { Entry } from './history.ts'
import type { Expected, Model } from './model.ts'
import { byToken, type NameMatcher } from './name-matcher.ts'

export interface NoticeRules {
  /**
   * A watch on a lease need not report what no longer counts when it could be reported: that a claim
   * held, if it was removed; a final deadline, if another one replaced it; anything, if the lease has
   * ended.
   */
  readonly overtakenMayBeMissed?: boolean | undefined
}

/** What is wrong with the notices of a watch: one too many, or one missing; `undefined` if nothing. */
export function missedNotice(
  entry: Entry,
  expected: Expected,
  model: Model,
  matcher: NameMatcher,
  rules: NoticeRules,
): string | undefined {
  const [first, ...rest] = entry.received
  if (first === undefined || first.type === 'compacted' || first.type === 'interrupted') {
    return undefined
  }
  if (entry.received.at(-1)?.type === 'interrupted' && !entry.mayBeInterrupted) {
    return 'it was interrupted, and nothing had gone wrong'
  }
  const received = rest.filter(({ type }) => type !== 'interrupted')
  // A closed or interrupted watch has received the beginning of them.
  const mustBeAll = !entry.closed && entry.received.at(-1)?.type !== 'interrupted'
  const wanted = expected.of === 'lease' ? expected.notices.slice(1) : eventsFor(expected, model)
  const found = expected.of === 'lease' ? received : splitEvents(received)
  if (typeof found === 'string') return found
  const groups = [found, wanted].map((list) => groupsOf(list)) as [Item[][], Item[][]]
  return differenceOf(...groups, mustBeAll, matcher, rules)
}

type Item = Notice | Event

function eventsFor(expected: Extract<Expected, { of: 'prefix' }>, { events }: Model): Event[] {
  const { prefix, after } = expected
  return events.filter(({ revision, key }) => revision > after && key.startsWith(prefix))
}

/** The events of all notices, or what is wrong with the notices. */
function splitEvents(received: readonly Notice[]): Event[] | string {
  const events: Event[] = []
  for (const notice of received) {
    if (notice.type !== 'events') return `a prefix's watch got ${JSON.stringify(notice)}`
    const [first, last] = [notice.events[0], notice.events.at(-1)]
    if (!first || !last) return 'a notice has no events'
    if (last.revision !== notice.revision) return `${JSON.stringify(notice)} names another revision`
    const before = events.at(-1)?.revision ?? 0
    if (first.revision <= before) return `revision ${first.revision} was reported in two notices`
    events.push(...notice.events)
  }
  return events
}

/** The notices of one revision are unordered. Every other notice is a group of its own. */
function groupsOf(list: readonly Item[]): Item[][] {
  const groups: Item[][] = []
  for (const found of list) {
    const before = groups.at(-1)
    const isTogether =
      'revision' in found &&
      before &&
      'revision' in before[0]! &&
      found.revision === before[0].revision
    if (isTogether) before.push(found)
    else groups.push([found])
  }
  return groups.map((group) => (group.length > 1 ? byToken(group as never[]) : group))
}

function differenceOf(
  found: readonly Item[][],
  wanted: readonly Item[][],
  mustBeAll: boolean,
  matcher: NameMatcher,
  rules: NoticeRules,
): string | undefined {
  let at = 0
  for (const group of found) {
    while (rules.overtakenMayBeMissed && isOvertaken(wanted[at], group, matcher)) at++
    const difference = matcher.difference(group, wanted[at] ?? [])
    if (difference !== undefined) {
      return `it got ${JSON.stringify(group)} but the model reports ${JSON.stringify(wanted[at])}: ${difference}`
    }
    at++
  }
  const missing = wanted
    .slice(at)
    .filter(([first]) => !(rules.overtakenMayBeMissed && (first as Notice).type === 'holds'))
  if (!mustBeAll || missing.length === 0) return undefined
  return `it did not get ${JSON.stringify(missing[0])}`
}

/** The wanted notice was left out, and the found one says why that does not matter. */
function isOvertaken(
  wanted: readonly Item[] | undefined,
  found: readonly Item[],
  matcher: NameMatcher,
): boolean {
  if (wanted === undefined || matcher.difference(found, wanted) === undefined) return false
  const [{ type: missed }, { type: later }] = [wanted[0] as Notice, found[0] as Notice]
  return missed === 'holds' || later === 'gone' || (missed === 'capped' && later === 'capped')
}
