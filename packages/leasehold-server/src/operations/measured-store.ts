import {
  type Clock,
  delegate,
  isLeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Renewed,
} from 'leasehold/port'
import { Histogram } from './exposition.ts'

export type Operation = 'grant' | 'renew' | 'revoke' | 'claim' | 'release' | 'update' | 'read'

/** A store that counts its calls and times its changes. */
export interface MeasuredStore extends LeaseStore {
  readonly calls: Readonly<Record<Operation, number>>
  /** The number of leases in all `renew` calls. */
  readonly renewals: number
  /** Failed changes by error code. */
  readonly failures: ReadonlyMap<string, number>
  /** Time from a change request to its answer, in seconds. */
  readonly commits: Histogram
  /** The message of the last change, if it failed because of the storage. */
  storageError: string | undefined
  /** Called with the renewed leases of every `renew` call. */
  onRenewed: ((leases: readonly LeaseId[]) => void) | undefined
}

/**
 * Measures a store. It times one change at a time: this costs nothing under load and shows the same
 * latency, because concurrent changes become durable together.
 */
export function measuredStore(store: LeaseStore, clock: Clock): MeasuredStore {
  const calls = { grant: 0, renew: 0, revoke: 0, claim: 0, release: 0, update: 0, read: 0 }
  const failures = new Map<string, number>()
  let isTiming = false
  const change = <Answer>(operation: Operation, answer: Promise<Answer>): Promise<Answer> => {
    calls[operation]++
    if (isTiming) {
      answer.catch(onFailed)
      return answer
    }
    isTiming = true
    const begun = clock.now()
    answer.then(
      () => {
        isTiming = false
        measured.storageError = undefined
        measured.commits.add((clock.now() - begun) / 1000)
      },
      (error) => {
        isTiming = false
        onFailed(error)
      },
    )
    return answer
  }
  const onFailed = (error: unknown): void => {
    const code = isLeaseholdError(error) ? error.code : 'unknown-outcome'
    failures.set(code, (failures.get(code) ?? 0) + 1)
    if (code.startsWith('storage-')) measured.storageError = (error as Error).message
  }
  const overrides: Partial<LeaseStore> = {
    grant: (request) => change('grant', store.grant(request)),
    renew: (leases) => {
      calls.renew++
      if (Array.isArray(leases)) measured.renewals += leases.length
      const answer = store.renew(leases)
      if (measured.onRenewed !== undefined) notifyRenewed(measured, leases, answer)
      return answer
    },
    revoke: (request) => change('revoke', store.revoke(request)),
    claim: (request) => change('claim', store.claim(request)),
    release: (request) => change('release', store.release(request)),
    update: (request) => change('update', store.update(request)),
    read: (query) => {
      calls.read++
      return store.read(query)
    },
  }
  const measured = Object.assign(delegate(store, overrides), {
    ...{ calls, renewals: 0, failures, commits: new Histogram() },
    storageError: undefined as MeasuredStore['storageError'],
    onRenewed: undefined as MeasuredStore['onRenewed'],
  })
  return measured
}

/** Only leases that the store has renewed count as heartbeats. */
function notifyRenewed(
  measured: MeasuredStore,
  leases: readonly LeaseId[],
  answer: Promise<Renewed>,
): void {
  answer.then(
    ({ lost }) => {
      const gone = new Set(lost.map(({ lease }) => lease))
      measured.onRenewed?.(gone.size === 0 ? leases : leases.filter((lease) => !gone.has(lease)))
    },
    () => {},
  )
}
