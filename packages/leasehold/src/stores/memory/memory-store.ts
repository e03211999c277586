import {
  type Clock,
  checkNames,
  DEFAULT_LIMITS,
  type Guarantees,
  knownNames,
  type LeaseStore,
  type Limits,
  systemClock,
  type Token,
} from '../../port/index.ts'
import { KernelRunner } from '../../runner/index.ts'

export interface MemoryStoreOptions {
  readonly clock?: Clock | undefined
  readonly limits?: Partial<Limits> | undefined
  /**
   * Tokens start above this number. A memory store forgets its tokens with the process. If the fences
   * that check them live longer, give a number that increases with every start.
   */
  readonly tokensAbove?: Token | undefined
}

const MEMORY_STORE_OPTIONS = knownNames<MemoryStoreOptions>({
  clock: true,
  limits: true,
  tokensAbove: true,
})

/** A store in the memory of this process. Nothing outlives the process; no other process can use it. */
export function memoryStore(options: MemoryStoreOptions = {}): LeaseStore {
  checkNames('memoryStore', options, MEMORY_STORE_OPTIONS)
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const runner = new KernelRunner({
    clock: options.clock ?? systemClock,
    guarantees: memoryGuarantees(limits),
    limits,
    revision: options.tokensAbove,
  })
  runner.start()
  return runner
}

function memoryGuarantees(limits: Limits): Guarantees {
  return {
    engine: 'memory',
    inProcess: true,
    durability: 'process',
    tokensSurvive: 'process',
    ttl: { min: limits.ttlMin, max: limits.ttlMax, step: 0 },
    expiryLateness: 5,
    childLeases: true,
    requestsRemembered: limits.requests,
    eventsKept: limits.events,
    notes: ['Leases and tokens are lost with the process.'],
  }
}
