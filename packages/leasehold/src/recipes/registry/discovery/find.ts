import type { Client } from '../../../client/index.ts'
import { checkNames, type Key, type KeyEntry } from '../../../port/index.ts'
import { keyPart } from '../../arguments.ts'
import {
  byId,
  FILTER_NAMES,
  type Filter,
  healthKey,
  type Instance,
  instanceOf,
  newestHealth,
  SERVICES,
  servicesKey,
  wantedBy,
} from '../instance/instance.ts'

const PAGE = 1000

/** Reads the current instances of a service from the store, sorted by id. */
export async function find(
  client: Client,
  service: string,
  filter?: Filter,
): Promise<readonly Instance[]> {
  const wanted = wantedBy(filter)
  if (filter !== undefined) checkNames('the filter of find', filter, FILTER_NAMES)
  keyPart('service', service)
  const health = new Map<Key, KeyEntry>()
  for await (const entry of entriesBelow(client, healthKey(service))) health.set(entry.key, entry)
  const found: Instance[] = []
  for await (const { key, claims } of entriesBelow(client, servicesKey(service))) {
    const result = health.get(healthKey(service, key.slice(servicesKey(service).length)))
    const instance = instanceOf(claims[0]!, newestHealth(result?.claims ?? []))
    if (instance && wanted.kind(instance) && wanted.status(instance)) found.push(instance)
  }
  return found.sort(byId)
}

/** The names of all services with an instance, sorted. */
export async function services(client: Client): Promise<readonly string[]> {
  const names = new Set<string>()
  for await (const { key } of entriesBelow(client, SERVICES)) names.add(key.split('/')[1]!)
  return [...names].sort()
}

async function* entriesBelow(client: Client, prefix: string): AsyncGenerator<KeyEntry> {
  let after: Key | undefined
  for (let more = true; more; ) {
    const page = await client.store.read({ prefix, after, limit: PAGE })
    yield* page.keys
    more = page.more
    after = page.keys.at(-1)?.key
  }
}
