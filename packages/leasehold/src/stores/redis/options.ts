import {
  type Clock,
  checkNames,
  DEFAULT_LIMITS,
  type Duration,
  invalid,
  knownNames,
  type Limits,
  positive,
  type Random,
  show,
  systemClock,
  systemRandom,
} from '../../port/index.ts'

export interface RedisStoreOptions {
  /** The names of all keys of the store start with this in braces, so that a cluster keeps them in one slot. */
  readonly namespace?: string | undefined
  /** How long a call may take before its outcome is unknown. Default: 5 s. */
  readonly timeout?: Duration | undefined
  /**
   * A call is answered when this many replicas have it. If they do not confirm it in `replicasTimeout`
   * (default: 1 s), its outcome is unknown: it was done, but a failover might lose it.
   */
  readonly replicas?: number | undefined
  readonly replicasTimeout?: Duration | undefined
  /** @deprecated The old name of `replicasTimeout`. */
  readonly within?: Duration | undefined
  /** All processes with one namespace must have the same limits. */
  readonly limits?: Partial<Limits> | undefined
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
}

const REDIS_STORE_OPTIONS = knownNames<RedisStoreOptions>({
  namespace: true,
  timeout: true,
  replicas: true,
  replicasTimeout: true,
  within: true,
  limits: true,
  clock: true,
  random: true,
})

export interface Settings {
  readonly namespace: string
  readonly timeout: number
  readonly replicas: number
  readonly replicasTimeout: number
  readonly limits: Limits
  readonly clock: Clock
  readonly random: Random
}

export function settingsOf(options: RedisStoreOptions): Settings {
  checkNames('redisStore', options, REDIS_STORE_OPTIONS)
  const { namespace = 'leasehold', replicas = 0, clock = systemClock } = options
  if (typeof namespace !== 'string' || !/^[\w.:/-]{1,128}$/.test(namespace)) {
    throw invalid(
      `namespace is ${show(namespace)}: it must be 1 to 128 letters, digits and any of _ . : / -`,
    )
  }
  if (!Number.isInteger(replicas) || replicas < 0) {
    throw invalid(`replicas is ${show(replicas)}: it must be an integer of at least 0`)
  }
  return {
    namespace,
    replicas,
    clock,
    timeout: positive(options.timeout ?? 5000, 'timeout'),
    replicasTimeout: positive(options.replicasTimeout ?? options.within ?? 1000, 'replicasTimeout'),
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    random: options.random ?? systemRandom,
  }
}
