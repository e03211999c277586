import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Claimed, Granted, LeaseStore } from '../../../src/port/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { describeWith, Engine, ZOOKEEPER } from '../../engines/index.ts'
import { pause } from './raw-session.ts'

const READING_MS = 1500

describeWith(ZOOKEEPER, 'a reading from ZooKeeper while others change things', () => {
  let engine: Engine
  let writer: LeaseStore
  let reader: LeaseStore
  beforeAll(async () => {
    engine = await Engine.start(ZOOKEEPER)
    writer = await zookeeperStore({ servers: `127.0.0.1:${engine.port}` })
    reader = await zookeeperStore({ servers: `127.0.0.1:${engine.port}` })
  })
  afterAll(async () => {
    await writer?.close()
    await reader?.close()
    await engine?.stop()
  })

  /** Reads again and again while something is done again and again. */
  async function readWhile<R>(change: () => Promise<void>, read: () => Promise<R>): Promise<R[]> {
    const end = performance.now() + READING_MS
    const readings: R[] = []
    // On a busy machine it takes longer until there are enough.
    const isOn = () => performance.now() < end || readings.length <= 5
    const changing = (async () => {
      while (isOn()) await change()
    })()
    while (isOn()) readings.push(await read())
    await changing
    return readings
  }

  async function grant(...keys: string[]): Promise<Granted> {
    const claims = keys.map((key) => ({ key }))
    const spec = { holder: 'a', ttl: 60_000, ...(claims.length > 0 && { claims }) }
    return (await writer.grant(spec)) as Granted
  }

  it.each([
    ['beside each other', (count: number) => `beside/${count}`],
    ['below each other', (count: number) => `below/${count % 5}/${count % 7}/${count}`],
  ])(
    'of a prefix has all keys up to its revision, %s (I16)',
    async (_, keyOf) => {
      const made: { readonly key: string; readonly token: number }[] = []
      const prefix = keyOf(0).split('/')[0]!
      const readings = await readWhile(
        async () => {
          const key = keyOf(made.length)
          made.push({ key, token: (await grant(key)).token })
        },
        () => reader.read({ prefix: `${prefix}/`, limit: 1000 }),
      )
      const lacking = readings.filter(({ revision, keys, more }) => {
        const there = new Set(keys.map(({ key }) => key))
        const last = keys.at(-1)?.key ?? ''
        return made.some(
          ({ key, token }) => token <= revision && !there.has(key) && !(more && key > last),
        )
      })
      expect(lacking.length).toBe(0)
    },
    30_000,
  )

  it('of a prefix has both or neither of two keys that come and go together', async () => {
    const readings = await readWhile(
      async () => {
        const { lease } = await grant('both/one', 'both/two/below')
        await pause(5)
        await writer.revoke({ target: { lease } })
        await pause(5)
      },
      () => reader.read({ prefix: 'both/' }),
    )
    const halves = readings.filter(({ keys }) => keys.length === 1)
    expect(halves).toEqual([])
    expect(readings.some(({ keys }) => keys.length === 2)).toBe(true)
  })

  it('of a prefix always has a key that changes hands', async () => {
    const held = await grant('hands/key')
    let { lease } = held
    const readings = await readWhile(
      async () => {
        const next = await grant('hands/key')
        await writer.revoke({ target: { lease } })
        lease = next.lease
        await pause(5)
      },
      () => reader.read({ prefix: 'hands/' }),
    )
    const lacking = readings.filter(
      ({ keys: [entry] }) => !entry || entry.claims.length === 0 || entry.holders !== 1,
    )
    expect(lacking).toEqual([])
  })

  it('of a lease counts the claims that it shows', async () => {
    const { lease } = await grant()
    let count = 0
    const readings = await readWhile(
      async () => {
        const keys = [`counted/${count++}`, `counted/${count++}`]
        const claims = keys.map((key) => ({ key }))
        const { token } = (await writer.claim({ lease, claims })) as Claimed
        await pause(3)
        await writer.release({ lease, keys: keys.slice(0, 1), token })
        await pause(3)
        await writer.release({ lease, keys: keys.slice(1), token })
        await pause(3)
      },
      () => reader.read({ lease }),
    )
    const wrong = readings.filter((each) => each.lease?.claims !== each.claims.length)
    expect(wrong).toEqual([])
    expect(new Set(readings.map(({ claims }) => claims.length))).toEqual(new Set([0, 1, 2]))
  })

  it('of a lease tells how it ended, or that it has not', async () => {
    let { lease } = await grant()
    const readings = await readWhile(
      async () => {
        lease = (await grant('ending/key')).lease
        await pause(3)
        await writer.revoke({ target: { lease }, by: 'me' })
        await pause(3)
      },
      () => reader.read({ lease }),
    )
    const wrong = readings.filter((each) => (each.lease === undefined) === (each.end === undefined))
    expect(wrong).toEqual([])
  })

  it('of all leases has those that were there at its revision', async () => {
    const root = '/turns'
    const [one, other] = await Promise.all(
      [0, 1].map(() => zookeeperStore({ servers: `127.0.0.1:${engine.port}`, root })),
    )
    const made: { readonly lease: string; readonly from: number; to: number }[] = []
    const grantOne = async () => {
      const { lease, revision } = (await one!.grant({ holder: 'a', ttl: 60_000 })) as Granted
      made.push({ lease, from: revision, to: Number.POSITIVE_INFINITY })
    }
    for (let count = 0; count < 200; count++) await grantOne()
    let ended = 0
    const readings = await readWhile(
      async () => {
        await grantOne()
        const oldest = made[ended++]!
        oldest.to = (await one!.revoke({ target: { lease: oldest.lease } })).revision
        await pause(10)
      },
      () => other!.read({ leases: true }),
    )
    const wrong = readings.filter(({ revision, leases }) => {
      const wanted = made.filter(({ from, to }) => from <= revision && revision < to)
      const there = leases.map(({ id }) => id).sort()
      return String(there) !== String(wanted.map(({ lease }) => lease).sort())
    })
    expect(wrong.length).toBe(0)
    await one!.close()
    await other!.close()
  }, 30_000)

  it('of a prefix comes in pages, by name', async () => {
    const names = ['a', 'a!b', 'a/b', 'a/b/c', 'a/b0', 'a0', 'ab', 'b', 'b/a', 'b/a/a', 'c/d/e']
    const keys = names.map((name) => `paged/${name}`)
    await Promise.all(keys.map((key) => grant(key)))
    for (const prefix of ['paged/', 'paged/a', 'paged/a/', 'paged/b', 'paged/none']) {
      const wanted = keys.filter((key) => key.startsWith(prefix)).sort()
      for (let limit = 1; limit <= keys.length; limit++) {
        const found: string[] = []
        for (let isMore = true; isMore; ) {
          const after = found.at(-1)
          const page = await reader.read({ prefix, limit, ...(after && { after }) })
          found.push(...page.keys.map(({ key }) => key))
          isMore = page.more
        }
        expect(found).toEqual(wanted)
      }
    }
  })
})
