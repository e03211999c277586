import type { Event, Notice } from '../../port/index.ts'
import type { Entry } from './history.ts'
import { byToken, type Matching } from './matching.ts'
import type { Expected, Model } from './model.ts'

export interface NoticeRules {
  /**
   * A watch on a lease need not tell that a claim came to hold which was gone again by the time it
   * could be told.
   */
  readonly holdsMayBeMissed?: boolean | undefined
}

/** What a watch heard that it must not hear, or did not hear that it must; `undefined` if nothing. */
export function missedNotice(
  entry: Entry,
  expected: Expected,
  model: Model,
  matching: Matching,
  rules: NoticeRules,
): string | undefined {
  const [first, ...rest] = entry.heard
  if (first === undefined || first.type === 'compacted' || first.type === 'interrupted') {
    return undefined
  }
  if (entry.heard.at(-1)?.type === 'interrupted' && !entry.mayBeInterrupted) {
    return 'it was interrupted, and nothing had gone wrong'
  }
  const heard = rest.filter(({ type }) => type !== 'interrupted')
  // What was closed or interrupted has heard the beginning of it all.
  const mustBeAll = !entry.closed && entry.heard.at(-1)?.type !== 'interrupted'
  const wanted = expected.of === 'lease' ? expected.notices.slice(1) : eventsFor(expected, model)
  const told = expected.of === 'lease' ? heard : splitEvents(heard)
  if (typeof told === 'string') return told
  const groups = [told, wanted].map((list) => groupsOf(list)) as [Told[][], Told[][]]
  return differenceOf(...groups, mustBeAll, matching, rules)
}

type Told = Notice | Event

function eventsFor(expected: Extract<Expected, { of: 'prefix' }>, { events }: Model): Event[] {
  const { prefix, after } = expected
  return events.filter(({ revision, key }) => revision > after && key.startsWith(prefix))
}

/** The events of all notices; or what is wrong with the notices. */
function splitEvents(heard: readonly Notice[]): Event[] | string {
  const events: Event[] = []
  for (const notice of heard) {
    if (notice.type !== 'events') return `a prefix's watch heard ${JSON.stringify(notice)}`
    const [first, last] = [notice.events[0], notice.events.at(-1)]
    if (!first || !last) return 'a notice has no events'
    if (last.revision !== notice.revision) return `${JSON.stringify(notice)} names another revision`
    const before = events.at(-1)?.revision ?? 0
    if (first.revision <= before) return `revision ${first.revision} was told in two notices`
    events.push(...notice.events)
  }
  return events
}

/** What happened in one revision has no order. Every other notice is a group of its own. */
function groupsOf(list: readonly Told[]): Told[][] {
  const groups: Told[][] = []
  for (const told of list) {
    const before = groups.at(-1)
    const isTogether =
      'revision' in told &&
      before &&
      'revision' in before[0]! &&
      told.revision === before[0].revision
    if (isTogether) before.push(told)
    else groups.push([told])
  }
  return groups.map((group) => (group.length > 1 ? byToken(group as never[]) : group))
}

function differenceOf(
  told: readonly Told[][],
  wanted: readonly Told[][],
  mustBeAll: boolean,
  matching: Matching,
  rules: NoticeRules,
): string | undefined {
  let at = 0
  for (const group of told) {
    while (rules.holdsMayBeMissed && isMissed(group, wanted[at], matching)) at++
    const difference = matching.difference(group, wanted[at] ?? [])
    if (difference !== undefined) {
      return `it heard ${JSON.stringify(group)} where the model tells ${JSON.stringify(wanted[at])}: ${difference}`
    }
    at++
  }
  const missing = wanted
    .slice(at)
    .filter(([first]) => !(rules.holdsMayBeMissed && (first as Notice).type === 'holds'))
  if (!mustBeAll || missing.length === 0) return undefined
  return `it did not hear ${JSON.stringify(missing[0])}`
}

/** That a claim holds was left out, and something else was told. */
function isMissed(told: readonly Told[], wanted: readonly Told[] | undefined, matching: Matching) {
  if (wanted === undefined || (wanted[0] as Notice).type !== 'holds') return false
  return matching.difference(told, wanted) !== undefined
}
