import { DEFAULT_LIMITS } from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import { REFUSALS_WRITTEN } from '../../src/access/audit/limited-audit.ts'
import { Access, type AuditEntry, parseRight } from '../../src/access/index.ts'
import { lease, open, refused } from './scene.ts'

const target = { key: 'jobs/1' }

async function scene() {
  const { store, clock, token } = await open()
  const eve = await token('eve', ['claim:eve/'])
  const boss = await token('boss', ['admin:jobs/'])
  const entries: AuditEntry[] = []
  const audit = { record: (entry: AuditEntry) => void entries.push(entry) }
  const access = await Access.open({ store, clock, limits: DEFAULT_LIMITS, audit })
  const as = (text: string, address: string) =>
    access.admit({ authorization: `Bearer ${text}`, address }).store
  return { store, clock, entries, access, as, eve, boss }
}

describe('the audit of refusals', () => {
  it('is bounded for each principal and address, and says how many more there were', async () => {
    const { clock, entries, as, eve } = await scene()
    const refuse = async (address: string, times: number) => {
      for (let at = 0; at < times; at++) {
        await expect(as(eve, address).revoke({ target, why: 'x' })).rejects.toThrowError()
      }
    }
    await refuse('192.0.2.1', 500)
    await refuse('2001:db8::1', 30)
    expect(entries).toHaveLength(2 * REFUSALS_WRITTEN)
    expect(entries[0]).toMatchObject({ by: 'eve', from: '192.0.2.1', outcome: 'forbidden' })
    await clock.advance(60_001)
    expect(entries.slice(2 * REFUSALS_WRITTEN)).toMatchObject(
      [
        { action: 'refusals', by: 'eve', from: '192.0.2.1', why: /^480 more refusals/ },
        { action: 'refusals', by: 'eve', from: '2001:db8::1', why: /^10 more refusals/ },
      ].map((entry) => ({ ...entry, why: expect.stringMatching(entry.why) })),
    )
    await refuse('192.0.2.1', 1)
    expect(entries.at(-1)).toMatchObject({ action: 'revoke', from: '192.0.2.1' })
  })

  it('never drops an entry of a completed action', async () => {
    const { store, entries, as, boss } = await scene()
    const mine = as(boss, '192.0.2.1')
    for (let at = 0; at < 2 * REFUSALS_WRITTEN; at++) {
      await expect(mine.revoke({ target })).rejects.toThrowError(/needs a reason/)
    }
    for (let at = 0; at < 100; at++) {
      await lease(store, ['jobs/1'])
      await mine.revoke({ target, why: 'stuck' })
    }
    expect(entries.filter(({ outcome }) => outcome === 'done')).toHaveLength(100)
    expect(entries).toHaveLength(100 + REFUSALS_WRITTEN)
  })

  it('is complete when the server stops', async () => {
    const { entries, access, as, eve } = await scene()
    for (let at = 0; at < REFUSALS_WRITTEN + 5; at++) {
      await expect(as(eve, '::1').revoke({ target, why: 'x' })).rejects.toThrowError()
    }
    access.close()
    expect(entries.at(-1)).toMatchObject({ why: '5 more refusals within a minute' })
  })
})

describe('a server that a network reaches', () => {
  it('is not opened to everybody by the end of its last token', async () => {
    const { store, clock } = await open()
    const audit = { record: () => {} }
    const limits = DEFAULT_LIMITS
    const access = await Access.open({
      store,
      clock,
      limits,
      audit,
      openWithoutAccessTokens: false,
    })
    const rights = [parseRight('all:')]
    await access.tokens.create({ name: 'ann', rights })
    await access.tokens.revoke('ann', 'root')
    expect(() => access.admit({})).toThrowError(refused('unauthenticated'))
    expect(() => access.admit({})).toThrowError(/last access token .* was revoked/)
  })
})
