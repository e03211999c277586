import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { redisLog } from '../../../src/logs/redis/index.ts'
import { Recorder } from '../../../src/testing/log-conformance/recorder.ts'
import { describeWith, Engine, REDIS, redisReplica } from '../../engines/index.ts'

const DOCUMENT = new URL('../../../../../docs/redis.md', import.meta.url)

/** The rights that the page of Redis lists for the log form. */
function documentedRights(): string[] {
  const [, form] = readFileSync(DOCUMENT, 'utf8').split('## The log form')
  return /`(\+eval [^`]*)`/.exec(form!)![1]!.split(' ')
}

describeWith(REDIS, 'the Redis log, for a user with the rights that its page lists', () => {
  it('does everything, also with replicas', async () => {
    const master = await Engine.start(REDIS)
    const replica = await Engine.start(redisReplica(master.port))
    const admin = new Redis({ port: master.port, host: '127.0.0.1' })
    const rights = documentedRights()
    await admin.call('ACL', 'SETUSER', 'some', 'on', '>x', '~{leasehold}:*', ...rights)
    const some = new Redis({
      port: master.port,
      host: '127.0.0.1',
      username: 'some',
      password: 'x',
    })
    const log = await redisLog(some, { replicas: 1, within: 10_000, timeout: 10_000 })
    const follower = new Recorder(log, 0, 15_000)
    const last = await log.append(Buffer.from('a'))
    await follower.until(1)
    expect(follower.texts).toEqual(['a'])
    await log.saveSnapshot({ position: last, chunks: [Buffer.from('s')] })
    const next = { position: last + 1, chunks: [Buffer.from('t')] }
    await log.append(Buffer.from('b'))
    await log.saveSnapshot(next)
    expect(await log.loadSnapshot()).toEqual(next)
    await log.trim(last)
    expect(await log.tail()).toBe(last + 1)
    follower.close()
    await log.close()
    for (const client of [admin, some]) client.disconnect()
    await Promise.all([master.stop(), replica.stop()])
  }, 60_000)
})
