import type { Event } from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import {
  breakLease,
  drainInstance,
  revokeLease,
  takeKey,
} from '../../../dashboard/model/admin-actions.ts'
import { type KeyRow, Mirror } from '../../../dashboard/model/mirror.ts'

let revision = 0

function event(key: string, more: Partial<Event> = {}): Event {
  revision++
  const who = { holder: 'h', lease: `${revision}.${revision}`, token: revision }
  return { revision, type: 'claimed', key, mode: 'exclusive', at: 1000 * revision, ...who, ...more }
}

function mirrorWith(...events: readonly Event[]): Mirror {
  const mirror = new Mirror()
  for (const one of events) mirror.apply(one)
  return mirror
}

describe('an admin action', () => {
  const mirror = mirrorWith(
    event('jobs/1', { holder: 'ada', lease: 'L' }),
    event('jobs/1', { holder: 'bo' }),
    event('jobs/2', { holder: 'ada', lease: 'L' }),
  )

  it('names the losses and the next holder', () => {
    const lease = mirror.leases.get('L')!
    const said = revokeLease(mirror, lease).consequences.join('\n')
    expect(said).toContain('It loses 2 claims: jobs/1, jobs/2.')
    expect(said).toContain('bo is next in the queue for jobs/1 and holds it at once.')
    expect(breakLease(mirror, lease).consequences.join('\n')).toContain('holds it then.')
    expect(takeKey(mirror.keys.get('jobs/1')!)!.consequences[1]).toContain(
      'bo is next in the queue',
    )
    expect(takeKey(mirror.keys.get('jobs/2')!)!.consequences[1]).toBe(
      'Nobody waits: the key is free.',
    )
    expect(drainInstance('s', 'i', 0).consequences[1]).toContain('No healthy instance of s is left')
  })

  it('on a shared key leaves it to the others, and admits waiters that fit beside them', () => {
    const shared = { mode: 'shared', limit: 2 } as const
    const line = ['a', 'b', 'c'].map((holder) => event('s', { holder, ...shared }))
    const row = mirrorWith(...line).keys.get('s')!
    const said = (of: KeyRow, token: number) => takeKey(of, token)!.consequences.slice(1, -1)
    expect(said(row, line[1]!.token)).toEqual([
      'a keeps holding it.',
      `c is next in the queue and holds it at once, with the higher token ${line[2]!.token}.`,
    ])
    expect(takeKey(row, line[1]!.token)!.request('stuck', 0)).toMatchObject({
      token: line[1]!.token,
    })
    expect(takeKey(row, line[2]!.token)).toBeUndefined()
    const writer = event('s', { holder: 'w' })
    const mixed = mirrorWith(line[0]!, line[1]!, writer).keys.get('s')!
    expect(said(mixed, line[0]!.token)).toEqual([
      'b keeps holding it.',
      'w is next in the queue and keeps waiting.',
    ])
    const both = mirrorWith(line[0]!, line[1]!).keys.get('s')!
    expect(said(both, line[0]!.token)).toEqual(['b keeps holding it.', 'Nobody waits.'])
  })

  it('on a session and on a term has its own name', () => {
    const value = `${JSON.stringify({ user: 'eve', ttl: 1, max: 2 })}\n{}`
    const sessions = mirrorWith(event('session/web/id/abc', { holder: 'web-1', lease: 'S', value }))
    const action = revokeLease(sessions, sessions.leases.get('S')!)
    expect(action).toMatchObject({ title: 'End the session of eve', button: 'End the session' })
    expect(action.consequences[0]).toContain('eve is logged out at once')
    const line = [
      event('election/boss/line', { value: JSON.stringify({ candidate: 'n', leads: true }) }),
      event('election/boss/line', { value: JSON.stringify({ candidate: 'm', leads: false }) }),
    ]
    const term = takeKey(mirrorWith(...line).keys.get('election/boss/line')!)!
    expect(term).toMatchObject({ title: 'End the term of n in boss', button: 'End its term' })
    expect(term.consequences[1]).toContain('m is next in the queue and leads')
  })

  it('reports if it would have no effect any more', () => {
    const [ada, bo] = [event('k', { holder: 'ada' }), event('k', { holder: 'bo' })]
    const changing = mirrorWith(ada, bo)
    const action = takeKey(changing.keys.get('k')!)!
    expect(action.obsolete!(changing)).toBeUndefined()
    changing.apply({ ...event('k', ada), type: 'removed', revision: ++revision })
    expect(action.obsolete!(changing)).toBe('ada no longer holds it: bo does now.')
  })

  it('becomes a request with the reason and the period', () => {
    const lease = mirror.leases.get('L')!
    expect(revokeLease(mirror, lease).request('stuck', 0)).toEqual({
      ...{ action: 'revoke', lease: 'L', why: 'stuck' },
    })
    expect(breakLease(mirror, lease).request('stuck', 5000)).toEqual({
      ...{ action: 'break', lease: 'L', after: 5000, why: 'stuck' },
    })
    const token = mirror.keys.get('jobs/1')!.claims[0]!.token
    expect(takeKey(mirror.keys.get('jobs/1')!)!.request('stuck', 0)).toEqual({
      ...{ action: 'take', key: 'jobs/1', token, why: 'stuck' },
    })
  })
})
