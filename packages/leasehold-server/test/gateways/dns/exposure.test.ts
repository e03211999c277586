import { memoryStore } from 'leasehold/memory'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { loadConfig, warnOfOpenDns } from '../../../src/config/index.ts'
import { AnswerBudget } from '../../../src/gateways/dns/answer-budget.ts'
import { createServer } from '../../../src/index.ts'

const configOf = (dns?: string) => loadConfig({ dns }, {})

describe('--dns', () => {
  it.each([
    ['8600', { host: '127.0.0.1', port: 8600 }],
    ['10.0.0.1:53', { host: '10.0.0.1', port: 53 }],
    ['[::1]:8600', { host: '::1', port: 8600 }],
    [undefined, undefined],
  ])('%s listens on %o', (given, address) => {
    expect(configOf(given).values.dns).toEqual(address)
  })

  it.each(['', 'dns', 'localhost:8600', '::1:8600', '[10.0.0.1]:8600', '65536', '10.0.0.1'])(
    '%s is refused, with what is allowed',
    (given) => {
      expect(() => configOf(given)).toThrow(/dns is .*(port|65535)/)
    },
  )

  it('warns if other machines can reach it', () => {
    const warningsOf = (dns?: string) => {
      const warnings: string[] = []
      warnOfOpenDns(configOf(dns), (warning) => warnings.push(warning))
      return warnings
    }
    expect(warningsOf('0.0.0.0:8600')).toEqual([expect.stringContaining('no access rights')])
    expect(warningsOf('8600')).toEqual([])
    expect(warningsOf()).toEqual([])
  })

  it('is off by default, and a port that is in use stops the start', async () => {
    const store = memoryStore()
    const plain = await createServer({ store, port: 0 })
    expect(plain.dnsPort).toBeUndefined()
    await plain.close()
    const dns = { host: '127.0.0.1', port: 0 }
    const first = await createServer({ store, port: 0, gateways: { dns } })
    const second = createServer({
      ...{ store, port: 0, gateways: { dns: { ...dns, port: first.dnsPort! } } },
    })
    await expect(second).rejects.toThrow(/DNS cannot listen on .*EADDRINUSE.*--dns/)
    await first.close()
    await store.close()
  })
})

describe('the budget of answers over UDP', () => {
  it('first shortens the answers to a network, and leaves other networks alone', async () => {
    const clock = new TestClock()
    const budget = new AnswerBudget(clock)
    expect(budget.limitFor('10.0.0.77')).toBe(4096)
    for (let at = 0; at < 300; at++) budget.spend(`10.0.0.${at & 255}`, 4096)
    expect(budget.limitFor('10.0.0.77')).toBe(512)
    expect(budget.limitFor('10.0.1.77')).toBe(4096)
    await clock.advance(1000)
    expect(budget.limitFor('10.0.0.77')).toBe(4096)
  })

  it('then answers nothing, so that a victim gets at most 2 MiB per second', async () => {
    const clock = new TestClock()
    const budget = new AnswerBudget(clock)
    const sent = async (seconds: number) => {
      let bytes = 0
      for (let tick = 0; tick < seconds * 10; tick++) {
        await clock.advance(100)
        for (let query = 0; query < 2000; query++) {
          const limit = budget.limitFor('10.0.0.1')
          if (limit === 0) continue
          budget.spend('10.0.0.1', limit)
          bytes += limit
        }
      }
      return bytes
    }
    const MIB = 1024 * 1024
    expect(await sent(1)).toBeLessThan(11 * MIB)
    expect(await sent(10)).toBeLessThan(21 * MIB)
    expect(budget.limitFor('10.0.0.1')).toBe(0)
    expect(budget.limitFor('10.0.1.1')).toBe(4096)
    await clock.advance(60_000)
    expect(budget.limitFor('10.0.0.1')).toBe(4096)
  })

  it('does not count short answers as large ones', () => {
    const budget = new AnswerBudget(new TestClock())
    for (let at = 0; at < 10_000; at++) budget.spend('10.0.0.1', 200)
    expect(budget.limitFor('10.0.0.1')).toBe(4096)
  })

  it('counts an address of IPv6 with its /56, and IPv4 in its IPv6 form as IPv4', () => {
    const budget = new AnswerBudget(new TestClock())
    budget.spend('2001:db8:0:12ff::1', 2_000_000)
    expect(budget.limitFor('2001:db8:0:1201::2')).toBe(512)
    expect(budget.limitFor('2001:db8:0:1301::2')).toBe(4096)
    budget.spend('::ffff:10.0.0.1', 2_000_000)
    expect(budget.limitFor('10.0.0.2')).toBe(512)
  })

  it('remembers at most 10,000 networks', () => {
    const budget = new AnswerBudget(new TestClock())
    budget.spend('10.0.0.1', 2_000_000)
    for (let at = 0; at < 10_000; at++) budget.spend(`11.${at >> 8}.${at & 255}.1`, 1)
    expect(budget.limitFor('10.0.0.1')).toBe(4096)
  })
})
