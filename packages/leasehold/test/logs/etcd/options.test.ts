import { expect, it } from 'vitest'
import { etcdLog } from '../../../src/logs/etcd/index.ts'

// Invalid values show which option is read, without an etcd.
it.each([
  ['the deprecated name patience', { patience: 0 }, /memberTimeout is 0/],
  ['memberTimeout', { memberTimeout: 0 }, /memberTimeout is 0/],
  ['memberTimeout before patience', { memberTimeout: 1000, patience: 0 }, /gave no answer/],
])('etcdLog reads %s', async (_, options, message) => {
  const opened = etcdLog({ endpoints: '127.0.0.1:9', timeout: 500, ...options })
  await expect(opened).rejects.toThrow(message)
})
