import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Claimed, Granted, LeaseStore, Notice } from '../../../src/port/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { multi, multiRead, OPEN } from '../../../src/stores/zookeeper/wire/index.ts'
import { describeWith, Engine, ZOOKEEPER } from '../../engines/index.ts'
import { rawSession } from './raw-session.ts'

/** Answers that must not say more than is known, and records that must not mean something else. */
describeWith(ZOOKEEPER, 'what a store on ZooKeeper says', () => {
  let engine: Engine
  const open: LeaseStore[] = []
  beforeAll(async () => {
    engine = await Engine.start(ZOOKEEPER)
  })
  afterAll(async () => {
    for (const store of open) await store.close()
    await engine?.stop()
  })

  const store = async (root: string, more: object = {}) => {
    const opened = await zookeeperStore({ servers: `127.0.0.1:${engine.port}`, root, ...more })
    open.push(opened)
    return opened
  }
  const grant = async (in_: LeaseStore, key?: string) => {
    const claims = key === undefined ? undefined : [{ key }]
    return (await in_.grant({ holder: 'a', ttl: 600_000, claims })) as Granted
  }

  it('of a call that had left when it was closed, is that the outcome is unknown', async () => {
    const [closing, other] = [await store('/closed'), await store('/closed')]
    const { lease, token } = await grant(closing, 'key')
    const releasing = closing.release({ lease, keys: ['key'], token })
    const settled = Promise.allSettled([releasing])
    await new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)))
    await closing.close()
    const [answer] = await settled
    if (answer!.status === 'rejected') expect(answer!.reason.outcome).toBe('unknown')
    expect((await other.read({ key: 'key' })).count).toBe(0)
  })

  it('of a call that never left, is that it was closed', async () => {
    const closing = await store('/closed-before')
    const { lease, token } = await grant(closing, 'key')
    const releasing = closing.release({ lease, keys: ['key'], token })
    void closing.close()
    await expect(releasing).rejects.toMatchObject({ code: 'closed', outcome: 'refused' })
  })

  it('of labels, is what they were, whatever they are called', async () => {
    const own = await store('/labels')
    const labels = { ttl: 'Infinity', until: 'null', labels: 'Infinity' }
    const { lease } = (await own.grant({ holder: 'a', ttl: 600_000, labels })) as Granted
    const reading = (await own.read({ lease })).lease
    expect(reading?.labels).toEqual(labels)
  })

  it('of keys released at once, leaves none behind on the lease', async () => {
    const own = await store('/index', { limits: { claimsPerLease: 6 } })
    const { lease } = await grant(own)
    for (let round = 0; round < 5; round++) {
      const claimed = await own.claim({ lease, claims: [{ key: 'a' }, { key: 'b' }] })
      const { token } = claimed as Claimed
      await Promise.all(['a', 'b'].map((key) => own.release({ lease, keys: [key], token })))
    }
    expect((await own.read({ lease })).lease?.claims).toBe(0)
    const notices: Notice[] = []
    const watch = own.watch({ lease }, (notice) => notices.push(notice))
    while (notices.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    watch.close()
    expect(notices[0]).toMatchObject({ type: 'standing', claims: [] })
  })

  it('of a claim that waited until it was taken away, is not that it held', async () => {
    const [own, other] = [await store('/waited'), await store('/waited')]
    const holder = await grant(other, 'key')
    const { lease } = await grant(own)
    const claim = { lease, claims: [{ key: 'key' }], request: 'the-claim' }
    const claimed = (await own.claim(claim)) as Claimed
    expect(claimed.holds).toBe(false)
    // As the transaction leaves it, and it stays when the answer is lost: it does not say how it stood.
    await reopen('/waited', 'the-claim', 'key')
    await other.revoke({ target: { key: 'key', token: claimed.token } })
    expect(await own.claim(claim)).toMatchObject({ token: claimed.token, holds: false })
    expect((await own.read({ key: 'key' })).claims.map(({ token }) => token)).toEqual([
      holder.token,
    ])
  })

  it('of a claim that held and was released, is that it held', async () => {
    const own = await store('/held')
    const { lease } = await grant(own)
    const claim = { lease, claims: [{ key: 'key' }], request: 'the-claim' }
    const claimed = (await own.claim(claim)) as Claimed
    await own.release({ lease, keys: ['key'], token: claimed.token })
    expect(await own.claim(claim)).toEqual(claimed)
    // Nobody knows any more once sixteen others have held it.
    for (let round = 0; round < 16; round++) {
      const { token } = (await own.claim({ lease, claims: [{ key: 'key' }] })) as Claimed
      await own.release({ lease, keys: ['key'], token })
    }
    await expect(own.claim(claim)).rejects.toMatchObject({ outcome: 'unknown' })
  })

  /** Makes an entry of the journal say again where its claim is, and not how it stood. */
  async function reopen(root: string, request: string, key: string): Promise<void> {
    const session = rawSession(engine.port)
    const look = multiRead([{ at: 'children', path: `${root}/k/s${key}` }])
    const places = (await session.call(look)).value[0]!.children!
    const last = places
      .sort((one, two) => Number(/\d+$/.exec(one)) - Number(/\d+$/.exec(two)))
      .at(-1)
    const claim = /\.([\w-]+)\.-?\d+$/.exec(last!)![1]
    const answer = { outcome: 'claimed', revision: -1, token: -1, holds: true, ahead: [] }
    const entry = { answer, open: { claim, keys: [key] }, events: [] }
    const data = Buffer.from(JSON.stringify(entry))
    await session.call(multi([{ do: 'set', path: `${root}/j/p${request}`, data }], OPEN))
    await session.close('end')
  }
})
