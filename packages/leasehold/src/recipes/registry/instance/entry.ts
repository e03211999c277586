import { invalid, type Key, type Labels } from '../../../port/index.ts'
import { keyPart } from '../../arguments.ts'
import type { CheckStatus } from '../check/check.ts'
import { describe, descriptionJson, type InstanceSpec, parseDescription } from './description.ts'
import { servicesKey } from './instance.ts'

/**
 * What a registration writes to the store, for instances whose lease somebody else renews: a server
 * registers an instance for a caller in another language, and the caller renews the lease. Claim
 * the key exclusively with the value, under a separate lease with the labels.
 */
export interface RegistryEntry {
  readonly key: Key
  readonly value: string
  readonly labels: Labels
}

/** An update of a registered instance. */
export interface InstanceUpdate {
  readonly status?: CheckStatus | undefined
  readonly note?: string | undefined
  readonly load?: number | undefined
  /** The reason for maintenance; `false` when it is over. */
  readonly maintenance?: string | false | undefined
}

export function entryOf(service: string, id: string, spec: InstanceSpec): RegistryEntry {
  const labels = { service: keyPart('service', service), instance: keyPart('id', id) }
  return { key: servicesKey(service, id), value: descriptionJson(describe(spec)), labels }
}

/** Returns the value of an entry with the update applied. Throws if the value is not an entry. */
export function updatedEntry(value: string | undefined, update: InstanceUpdate): string {
  const before = parseDescription(value)
  if (before === undefined)
    throw invalid('the claim does not describe an instance. Register it first')
  const { status, note, load = before.load } = update
  const { maintenance = before.maintenance ?? false } = update
  const count = (before.report?.count ?? 0) + 1
  const after = {
    ...before,
    load,
    maintenance: maintenance === false ? undefined : maintenance,
    report: status === undefined ? before.report : { status, note, count },
  }
  const json = descriptionJson(after)
  // Validated the way a reader would.
  if (parseDescription(json) !== undefined) return json
  throw invalid('the update is invalid: note must have at most 256 printable characters')
}
