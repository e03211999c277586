import type { Cache } from 'leasehold'
import type { LeaseId, Token } from 'leasehold/port'
import { NotAvailable } from '../responses/problem.ts'
import type { Call, Parameter, Route } from '../route.ts'
import { optionalDuration, waitOf } from './durations.ts'
import {
  answered,
  anything,
  duration,
  flag,
  given,
  leasePart,
  span,
  text,
  tokenPart,
  waitPart,
  whole,
} from './schemas.ts'

/** Caches for clients that have only HTTP: one of them loads a missing value, the others wait. */

const DEFAULT_LOAD_TTL = '10s'

const PARAMS: Readonly<Record<string, Parameter>> = {
  cache: { schema: text(), about: 'The cache.', required: true, example: 'prices' },
  entry: {
    schema: text(),
    about: 'The key of the value. Percent-encode slashes.',
    required: true,
    example: 'eur-usd',
  },
}

const found = { ...flag, description: 'Whether there is a value.' }
const value = { ...anything, description: 'The value: any JSON.' }

export const CACHES: readonly Route[] = [
  {
    method: 'GET',
    path: '/v1/caches/{cache}/{entry}',
    id: 'readCache',
    group: 'Caches',
    title: 'Read a value, without loading it',
    params: PARAMS,
    answer: {
      status: 200,
      about: 'The value, even a stale one, if there is one.',
      schema: answered({ found, value }, 'value'),
    },
    handle: (call) =>
      withCache(call, async (cache, entry) => {
        const value = await cache.peek(entry)
        return value === undefined ? { found: false } : { found: true, value }
      }),
  },
  {
    method: 'POST',
    path: '/v1/caches/{cache}/{entry}',
    id: 'loadCache',
    group: 'Caches',
    title: 'Read a value, or become its loader',
    about:
      'With `found`, use the value. Otherwise load it yourself, and store it with PUT and this `lease` and `token`: nobody else loads it meanwhile. Renew the lease if loading takes longer than `remaining`. While somebody else loads, the request waits for up to `wait`.',
    params: PARAMS,
    query: {
      wait: waitPart('How long to wait for another loader. Default: no wait.'),
      loadTtl: { schema: duration, about: 'How soon a dead loader is replaced. Default: 10s.' },
    },
    answer: {
      status: 200,
      about: 'The value, or the lease and the token of the loader.',
      schema: answered(
        { found, value, lease: text(), token: whole(1), remaining: span },
        ...['value', 'lease', 'token', 'remaining'],
      ),
    },
    problems: [409],
    handle: load,
  },
  {
    method: 'PUT',
    path: '/v1/caches/{cache}/{entry}',
    id: 'writeCache',
    group: 'Caches',
    title: 'Store a value',
    about:
      'With `lease` and `token` of a loader, the value is stored only if no newer one was stored since. Without them it replaces any value.',
    params: PARAMS,
    query: {
      ttl: { schema: duration, about: 'How long it is fresh. Default: 10 minutes.' },
      stale: { schema: duration, about: 'How much longer it is served. Default: 0.' },
      lease: { ...leasePart, required: false },
      token: { ...tokenPart, required: false },
    },
    body: { schema: given({ value: anything }, 'value'), example: { value: { price: 1.08 } } },
    answer: {
      status: 200,
      about: 'Whether it was stored. A loader that was too late was not.',
      schema: answered({ stored: flag }),
    },
    handle: write,
  },
  {
    method: 'DELETE',
    path: '/v1/caches/{cache}/{entry}',
    id: 'deleteFromCache',
    group: 'Caches',
    title: 'Remove a value',
    about: 'A loader that is running cannot store its value any more.',
    params: PARAMS,
    answer: { status: 200, about: 'There is no value.', schema: answered({ removed: flag }) },
    handle: (call) =>
      withCache(call, async (cache, entry) => {
        await cache.delete(entry)
        return { removed: true }
      }),
  },
]

type CacheSettings = { wait?: number; loadTtl?: number; ttl?: number; stale?: number }

function withCache<Result>(
  call: Call,
  work: (cache: Cache<unknown>, entry: string) => Promise<Result>,
  settings: CacheSettings = {},
): Promise<Result> {
  const { cache, entry } = call.params
  return call.leasehold((leasehold) => work(leasehold.cache(cache!, settings), entry!))
}

async function load(call: Call): Promise<unknown> {
  const query: { loadTtl?: string } = call.query
  const loadTtl = optionalDuration('loadTtl', query.loadTtl ?? DEFAULT_LOAD_TTL)!
  const start = async (cache: Cache<unknown>, entry: string) => {
    const started = await cache.startLoad(entry).catch((error: unknown) => {
      throw NotAvailable.afterWait(error)
    })
    if ('value' in started) return { found: true, value: started.value }
    if (call.gone) await call.store.revoke({ target: { lease: started.lease } }).catch(() => {})
    return { found: false, ...started, remaining: loadTtl }
  }
  return withCache(call, start, { loadTtl, wait: waitOf(call) })
}

async function write(call: Call): Promise<unknown> {
  const query: { ttl?: string; stale?: string; lease?: LeaseId; token?: Token } = call.query
  const { lease, token } = query
  const { value } = call.body as { value: unknown }
  const settings = {
    ...(query.ttl !== undefined && { ttl: optionalDuration('ttl', query.ttl)! }),
    ...(query.stale !== undefined && { stale: optionalDuration('stale', query.stale)! }),
  }
  const store = async (cache: Cache<unknown>, entry: string) => {
    if (token === undefined) {
      await cache.set(entry, value)
      return { stored: true }
    }
    const stored = await cache.finishLoad(entry, token, value)
    if (lease !== undefined) {
      await call.store.revoke({ target: { lease }, why: 'loaded' }).catch(() => {})
    }
    return { stored }
  }
  return withCache(call, store, settings)
}
