import { expect, it } from 'vitest'
import { Calls } from '../../../src/stores/remote/calls.ts'
import type { ServerConnection } from '../../../src/stores/remote/server-connection.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { STREAM } from './scripted-server.ts'

it('at most 250000 calls wait: one more is refused, until one was answered', async () => {
  // There is no stream, so all calls wait for one.
  const calls = new Calls(new TestClock(), 1000, { isUp: false } as ServerConnection)
  calls.up(STREAM)
  const call = () => {
    const id = calls.nextId()
    return calls.call(id, `[${id},"read",{"key":"k"}]`, true, () => 'answered')
  }
  const first = call()
  for (let at = 1; at < 250_000; at++) void call()
  await expect(call()).rejects.toMatchObject({ code: 'limit-exceeded' })
  calls.answer([1, 1])
  expect(await first).toBe('answered')
  void call()
  await expect(call()).rejects.toMatchObject({ code: 'limit-exceeded' })
})
