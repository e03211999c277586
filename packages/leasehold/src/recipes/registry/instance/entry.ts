import { invalid, type Key, type Labels } from '../../../port/index.ts'
import { keyPart } from '../../arguments.ts'
import type { CheckStatus } from '../check/check.ts'
import { describe, descriptionJson, type InstanceSpec, parseDescription } from './description.ts'
import { servicesKey } from './instance.ts'

/**
 * What a registration writes into the store, for those whose lease somebody else keeps: a server
 * registers an instance for a caller of another language, and the caller renews the lease. Claim the
 * key with the value, exclusively, under a lease of its own with the labels.
 */
export interface RegistryEntry {
  readonly key: Key
  readonly value: string
  readonly labels: Labels
}

/** What an instance says of itself after it was registered. */
export interface InstanceUpdate {
  readonly status?: CheckStatus | undefined
  readonly note?: string | undefined
  readonly load?: number | undefined
  /** Why it is in maintenance; `false` when it is over. */
  readonly maintenance?: string | false | undefined
}

export function entryOf(service: string, id: string, spec: InstanceSpec): RegistryEntry {
  const labels = { service: keyPart('service', service), instance: keyPart('id', id) }
  return { key: servicesKey(service, id), value: descriptionJson(describe(spec)), labels }
}

/** The value of an entry with the news in it. Refuses what is no entry. */
export function updatedEntry(value: string | undefined, news: InstanceUpdate): string {
  const before = parseDescription(value)
  if (before === undefined) throw invalid('the claim does not describe an instance: register it')
  const { status, note, load = before.load } = news
  const { maintenance = before.maintenance ?? false } = news
  const count = (before.report?.count ?? 0) + 1
  const after = {
    ...before,
    load,
    maintenance: maintenance === false ? undefined : maintenance,
    report: status === undefined ? before.report : { status, note, count },
  }
  const text = descriptionJson(after)
  // All of it is judged as a reader would judge it.
  if (parseDescription(text) !== undefined) return text
  throw invalid('the news cannot be read by others: note is at most 256 printable characters')
}
