import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { Leasehold } from '../../../src/index.ts'
import { redisLog, redisStore } from '../../../src/logs/redis/index.ts'
import { Recorder } from '../../../src/testing/log-conformance/recorder.ts'
import { describeWith, Engine, REDIS, redisReplica } from '../../engines/index.ts'

const DOCUMENT = new URL('../../../../../docs/redis.md', import.meta.url)

/** The rights that the page of Redis lists for each form. */
function documentedRights(): { native: string[]; log: string[] } {
  const [native, log] = readFileSync(DOCUMENT, 'utf8').split('## The log form')
  const rightsIn = (text: string) => {
    const line = text.split('\n').find((each) => each.startsWith('A user with limited rights'))
    return line!.match(/\+@?[a-z]+(?=[ `])/g)!
  }
  return { native: rightsIn(native!), log: rightsIn(log!) }
}

describeWith(REDIS, 'the Redis log, for a user with the rights that its page lists', () => {
  it('can do everything, even with replicas', async () => {
    const master = await Engine.start(REDIS)
    const replica = await Engine.start(redisReplica(master.port))
    const admin = new Redis({ port: master.port, host: '127.0.0.1' })
    const rights = documentedRights().log
    await admin.call('ACL', 'SETUSER', 'some', 'on', '>x', '~{leasehold}:*', ...rights)
    const some = new Redis({
      port: master.port,
      host: '127.0.0.1',
      username: 'some',
      password: 'x',
    })
    const log = await redisLog(some, { replicas: 1, replicasTimeout: 10_000, timeout: 10_000 })
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

describeWith(REDIS, 'the store in Redis, for a user with the rights that its page lists', () => {
  it('grants a key that another waits for', async () => {
    const engine = await Engine.start(REDIS)
    const admin = new Redis({ port: engine.port, host: '127.0.0.1' })
    const places = ['~{leasehold}:*', '&leasehold:*']
    await admin.call('ACL', 'SETUSER', 'some', 'on', '>x', ...places, ...documentedRights().native)
    const some = admin.duplicate({ username: 'some', password: 'x' })
    const client = await Leasehold.open(await redisStore(some))
    const held = await client.lock('key', { ttl: '30s' })
    const next = client.lock('key', { ttl: '30s' })
    await held.release()
    await (await next).release()
    await client.close()
    for (const each of [admin, some]) each.disconnect()
    await engine.stop()
  }, 60_000)
})
