import type { Event } from 'leasehold/port'
import type { Checker, Violated } from '../checker.js'

/**
 * I16: a watch sees every event once, in order, without gaps, however often its line breaks; where
 * it cannot it is told so. Two who watched the same revisions saw the same, and nobody saw less
 * than the calls that were answered.
 */
export function watchesMissNothing(violated: Violated): Checker {
  return {
    name: 'I16 watches miss nothing',
    finish({ watches, calls }) {
      for (const { name, events } of watches) {
        for (let at = 1; at < events.length; at++) {
          if (isAfter(events[at - 1]!, events[at]!)) continue
          violated(`${name} saw ${show(events[at]!)} after ${show(events[at - 1]!)}`)
        }
      }
      const whole = watches.filter(({ broken, events }) => !broken && events.length > 0)
      for (const { name, from, events } of whole) {
        const last = events[events.length - 1]!.revision
        const seen = new Set(events.map(({ type, key, token }) => `${type} ${key} ${token}`))
        for (const { kind, key, answer } of calls) {
          if (kind !== 'claim' || answer?.type !== 'done') continue
          if (answer.revision <= from || answer.revision > last) continue
          if (!seen.has(`claimed ${key} ${answer.token}`)) {
            violated(`${name} did not see the claim of ${key} with token ${answer.token}`)
          }
        }
      }
    },
  }
}

function isAfter(a: Event, b: Event): boolean {
  if (a.revision !== b.revision) return a.revision < b.revision
  return a.key !== b.key || a.token !== b.token || a.type !== b.type
}

function show({ revision, type, key, token }: Event): string {
  return `"${type} ${key} ${token}" of revision ${revision}`
}
