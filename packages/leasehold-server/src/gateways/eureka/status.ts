import type { InstanceUpdate, Status } from 'leasehold'
import { invalid, show } from 'leasehold/port'

/** The statuses of Eureka. */
const EUREKA_STATUSES = ['UP', 'DOWN', 'STARTING', 'OUT_OF_SERVICE', 'UNKNOWN'] as const

export type EurekaStatus = (typeof EUREKA_STATUSES)[number]

/** Clients use only what is UP, which includes what the brake holds back. */
export function eurekaStatusOf(status: Status, note: string | undefined): EurekaStatus {
  if (status === 'maintenance') return noted(note) ?? 'OUT_OF_SERVICE'
  if (status === 'critical') return noted(note) ?? 'DOWN'
  return 'UP'
}

/** What an instance says of itself. Everything but UP is critical, with the status as the note. */
export function ownStatus(given: unknown): InstanceUpdate {
  const status = parseStatus(given)
  return status === 'UP' ? { status: 'passing' } : { status: 'critical', note: status }
}

/** What an operator says of an instance, until it is taken back. UP takes back everything. */
export function overriding(given: unknown): InstanceUpdate {
  const status = parseStatus(given)
  return status === 'UP' ? { status: 'passing', maintenance: false } : { maintenance: status }
}

function noted(note: string | undefined): EurekaStatus | undefined {
  return EUREKA_STATUSES.find((status) => status === note && status !== 'UP')
}

function parseStatus(given: unknown): EurekaStatus {
  const status = EUREKA_STATUSES.find((each) => each === given)
  if (status !== undefined) return status
  throw invalid(`status is ${show(given)}: use one of ${EUREKA_STATUSES.join(', ')}`)
}
