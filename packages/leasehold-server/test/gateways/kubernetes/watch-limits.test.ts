import { get, type IncomingMessage } from 'node:http'
import { Writable } from 'node:stream'
import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { afterFile } from '../../../../leasehold/test/setup/after-file.ts'
import { readQuery } from '../../../src/gateways/kubernetes/lease-queries.ts'
import { LeaseWatch } from '../../../src/gateways/kubernetes/lease-watch.ts'
import { createServer } from '../../../src/index.ts'
import { LEASES, lease, requestsTo } from './kubernetes-scene.ts'

const PREFIX = 'kubernetes/'

/** A server on a store whose reads of lists wait while the test says so, and which counts watches. */
async function scene() {
  const inner = memoryStore()
  let gate: { readonly from: number; readonly isOpen: Promise<void> } | undefined
  let open = () => {}
  const seen = { watches: 0, reads: 0 }
  const isOurs = (target: object) => 'prefix' in target && String(target.prefix).startsWith(PREFIX)
  const store: LeaseStore = {
    guarantees: inner.guarantees,
    ...methodsOf(inner),
    read: async (query) => {
      if (isOurs(query)) {
        seen.reads++
        if (gate !== undefined && seen.reads >= gate.from) await gate.isOpen
      }
      return inner.read(query)
    },
    watch: (target, observer) => {
      const watch = inner.watch(target, observer)
      if (!isOurs(target)) return watch
      seen.watches++
      let isOpen = true
      return {
        close: () => {
          if (isOpen) seen.watches--
          isOpen = false
          watch.close()
        },
      }
    },
  }
  const server = await createServer({ store, port: 0, gateways: { kubernetes: true } })
  afterFile(async () => {
    await server.close()
    await inner.close()
  })
  const base = `${server.url}/kubernetes`
  return {
    seen,
    url: `${base}${LEASES}?watch=1`,
    ...requestsTo(base),
    /** Stops the reads of lists from this one on, until `resume`. */
    hold: (from = 1) => {
      const isOpen = new Promise<void>((resolve) => {
        open = resolve
      })
      gate = { from, isOpen }
    },
    resume: () => {
      gate = undefined
      open()
    },
  }
}

function methodsOf(store: LeaseStore) {
  const { grant, renew, revoke, claim, release, update, close } = store
  const bound = { grant, renew, revoke, claim, release, update, close }
  const entries = Object.entries(bound).map(([name, method]) => [
    name,
    (method as (...args: unknown[]) => unknown).bind(store),
  ])
  return Object.fromEntries(entries) as typeof bound
}

/** A watch on a connection of its own, which the test reads. */
function request(url: string) {
  const sent = get(url, { agent: false })
  sent.on('error', () => {})
  const answered = new Promise<IncomingMessage>((resolve) => sent.on('response', resolve))
  return { answered, leave: () => sent.destroy() }
}

describe('a watch that begins with the objects', () => {
  it('is not opened if its client leaves while they are read', async () => {
    const { hold, resume, seen, url, create } = await scene()
    await create(lease('there'))
    hold()
    const { leave } = request(url)
    await expect.poll(() => seen.reads).toBe(1)
    leave()
    // A client that stays shows when the one that left would have got its answer.
    const stays = request(url)
    await expect.poll(() => seen.reads).toBe(2)
    resume()
    await stays.answered
    await expect.poll(() => seen.watches).toBe(1)
    stays.leave()
    await expect.poll(() => seen.watches).toBe(0)
  })

  it('has no more open at a time than allowed, however many clients ask at once', async () => {
    const { hold, resume, seen, url } = await scene()
    hold()
    const clients = Array.from({ length: 1010 }, () => request(url))
    await expect.poll(() => seen.reads, { timeout: 30_000 }).toBeGreaterThanOrEqual(1000)
    resume()
    const answers = await Promise.all(clients.map(({ answered }) => answered))
    const refused = answers.filter(({ statusCode }) => statusCode === 429)
    expect(refused).toHaveLength(10)
    for (const { leave } of clients) leave()
    await expect.poll(() => seen.watches, { timeout: 30_000 }).toBe(0)
    expect((await request(url).answered).statusCode).toBe(200)
  }, 60_000)

  it('sends more of them than a client may leave unread, as fast as it reads', async () => {
    const { create, watch, patch, seen } = await scene()
    const big = { holderIdentity: 'x'.repeat(60_000) }
    for (let at = 0; at < 120; at++) await create(lease(`big-${at}`, big))
    const events = await watch('')
    const first = await events.next()
    expect(first!.type).toBe('ADDED')
    // It has not read everything before the client reads.
    expect(seen.reads).toBeLessThan(3)
    const names = new Set([first!.object.metadata.name])
    while (names.size < 120) names.add((await events.next())!.object.metadata.name)
    await patch('big-7', 'merge-patch', { spec: { holderIdentity: 'small' } })
    expect(await events.next()).toMatchObject({
      type: 'MODIFIED',
      object: { metadata: { name: 'big-7' }, spec: { holderIdentity: 'small' } },
    })
    events.close()
  }, 60_000)

  it('does not go back in time for objects that changed while it was sent', async () => {
    const { create, watch, patch, remove, get, hold, resume, seen } = await scene()
    const names = Array.from({ length: 60 }, (_, at) => `l-${String(at).padStart(2, '0')}`)
    for (const name of names) await create(lease(name))
    hold(2)
    const events = await watch('sendInitialEvents=true&allowWatchBookmarks=true')
    await expect.poll(() => seen.reads).toBe(2)
    for (const holderIdentity of ['a', 'b']) {
      for (const name of ['l-01', 'l-58']) {
        await patch(name, 'merge-patch', { spec: { holderIdentity } })
      }
    }
    await remove('l-59')
    resume()
    const versions = new Map<string, number[]>()
    const now = Number((await get('l-01')).metadata.resourceVersion)
    do {
      const { name, resourceVersion } = (await events.next())!.object.metadata
      versions.set(name, [...(versions.get(name) ?? []), Number(resourceVersion)])
    } while (versions.get('l-01')?.at(-1) !== now)
    await patch('l-58', 'merge-patch', { spec: { holderIdentity: 'c' } })
    const last = Number((await events.next())!.object.metadata.resourceVersion)
    // The first page was older: its object changed twice. That of the second had changed already.
    expect(versions.get('l-01')).toHaveLength(3)
    expect(versions.get('l-58')).toHaveLength(1)
    expect(last).toBeGreaterThan(versions.get('l-58')![0]!)
    expect(versions.has('l-59')).toBe(false)
    events.close()
  })
})

describe('a watch whose client does not read', () => {
  it('is disconnected some time after its end', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    await store.grant({ holder: 'x', ttl: 1000, claims: [{ key: 'x' }] })
    const response = new Writable({ write: () => {} })
    Object.assign(response, { writeHead() {}, flushHeaders() {} })
    const watch = new LeaseWatch({
      ...{ clock, store, storage: undefined as never, show: (object) => object },
      query: readQuery({ watch: '1', resourceVersion: '1', timeoutSeconds: '60' }, 'default'),
      response: response as never,
    })
    await watch.start()
    response.write('never read')
    await clock.advance(60_000)
    expect([response.writableEnded, response.destroyed]).toEqual([true, false])
    await clock.advance(10_000)
    expect(response.destroyed).toBe(true)
    await store.close()
  })
})
