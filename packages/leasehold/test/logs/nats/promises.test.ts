import { describe, expect, it } from 'vitest'
import { promisesOf, settingsOf } from '../../../src/logs/nats/options.ts'

const promised = (version: string | undefined, replicas = 3, synced = false) =>
  promisesOf(
    settingsOf({ synced }),
    { config: { num_replicas: replicas }, state: { first_seq: 1, last_seq: 0 }, cluster: {} },
    version === undefined ? undefined : { max_payload: 1000, version },
  )

describe('the failover guarantees of the NATS log', () => {
  it.each(['2.12.0', '2.12.15', '2.15.2', '2.100.0-RC.1', '3.0.0'])(
    'NATS %s: it loses nothing',
    (version) => {
      const { failoverLoses, notes } = promised(version)
      expect(failoverLoses).toBe(false)
      expect(notes.join()).not.toContain(version)
    },
  )

  it.each(['2.9.10', '2.11.17', '1.99.0'])(
    'NATS %s: it may lose answers, and the fix is a newer server',
    (version) => {
      const { failoverLoses, notes } = promised(version)
      expect(failoverLoses).toBe(true)
      expect(notes.join()).toMatch(`NATS ${version}: a leader that froze`)
      expect(notes.join()).toContain('Use NATS 2.12 or later')
    },
  )

  it('a server that does not say its version: it may lose answers', () => {
    expect(promised(undefined).failoverLoses).toBe(true)
  })

  it('one copy: no failover', () => {
    expect(promised('2.9.10', 1).failoverLoses).toBe(false)
  })

  it('states the loss after a crash of the machine, unless its files are synced', () => {
    expect(promised('2.12.0').notes.join()).toContain('every 2 minutes')
    expect(promised('2.12.0', 3, true).notes.join()).not.toContain('every 2 minutes')
  })
})
