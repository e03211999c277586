import { describe, expect, it } from 'vitest'
import { Kernel } from '../../src/kernel/index.ts'
import type { Granted, Refusal } from '../../src/port/index.ts'
import { Records } from './model/records.ts'

const NOW = 1_000_000
const FULL: Refusal = { code: 'storage-full', message: 'no space' }
const FAILED: Refusal = { code: 'storage-failed', message: 'it does not write' }
const holding = { holder: 'alice', ttl: 1000, claims: [{ key: 'a' }] }

/** Every call that changes something, with and without a request id. */
function calls(kernel: Kernel, lease: string, token: number, request?: string) {
  return (obstacle?: Refusal) => [
    kernel.grant({ ...holding, request: request && `${request} 1` }, NOW, obstacle),
    kernel.claim(
      { lease, claims: [{ key: 'b' }], request: request && `${request} 2` },
      NOW,
      obstacle,
    ),
    kernel.update(
      { lease, key: 'a', token, value: 'v', request: request && `${request} 3` },
      NOW,
      obstacle,
    ),
    kernel.release(
      { lease, keys: ['a'], token, request: request && `${request} 4` },
      NOW,
      obstacle,
    ),
    kernel.revoke({ target: { lease }, request: request && `${request} 5` }, NOW, obstacle),
  ]
}

function begin() {
  const records = new Records()
  const kernel = new Kernel({ changeSink: records })
  const { lease, token } = kernel.grant(holding, NOW) as Granted
  return { kernel, records, lease, token }
}

const refusals = (refusal: Refusal) => Array(5).fill({ outcome: 'refused', refusal })
const outcomes = (answers: readonly object[]) =>
  answers.map((answer) =>
    'outcome' in answer && answer.outcome === 'refused' ? 'refused' : 'done',
  )
const DONE = Array(5).fill('done')

describe('an obstacle', () => {
  it('refuses every call that would change something, and nothing changes', () => {
    const { kernel, records, lease, token } = begin()
    const changes = records.changes.length
    expect(calls(kernel, lease, token)(FULL)).toEqual(refusals(FULL))
    expect([kernel.revision, records.changes.length]).toEqual([1, changes])
    expect(outcomes(calls(kernel, lease, token)())).toEqual(DONE)
  })

  it('is the final answer to a call with a request id', () => {
    const { kernel, records, lease, token } = begin()
    const changes = records.changes.length
    const call = calls(kernel, lease, token, 'r')
    expect(call(FULL)).toEqual(refusals(FULL))
    expect(call()).toEqual(refusals(FULL))
    expect([kernel.revision, records.changes.length]).toEqual([1, changes])
  })

  it('with an unknown outcome is not final: a repeated call is carried out', () => {
    const { kernel, lease, token } = begin()
    const call = calls(kernel, lease, token, 'r')
    expect(call(FAILED)).toEqual(refusals(FAILED))
    expect(outcomes(call())).toEqual(DONE)
  })

  it('does not change an earlier answer', () => {
    const { kernel, lease, token } = begin()
    const call = calls(kernel, lease, token, 'r')
    const answers = call()
    expect(outcomes(answers)).toEqual(DONE)
    expect(call(FULL)).toEqual(answers)
  })
})
