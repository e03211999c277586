import { invalid, knownNames, show } from '../../../port/index.ts'
import { oneOf } from '../../arguments.ts'
import type { Instance } from '../instance/instance.ts'

/**
 * How to choose one of several instances.
 *
 * - `round-robin`: one after the other.
 * - `least-loaded`: the lowest reported load for its weight. Reports are a little old, so many
 *   callers may choose the same instance.
 * - `two-choices`: the less loaded of two random instances, which avoids that.
 * - `weighted`: randomly, in proportion to the weights.
 * - `zone-first`: round-robin in the caller's zone, and among all only if the zone has none.
 * - `consistent-hash`: the same instance for the same key, as long as it exists. If one of n
 *   leaves, only its keys move, about one in n, and spread over all others. A new instance takes
 *   its share, and no other key moves.
 *
 * All but `round-robin` and `zone-first` respect weights. An instance of weight 0 is chosen only if
 * there is no other.
 */
export const PICK_STRATEGIES = [
  'round-robin',
  'least-loaded',
  'two-choices',
  'weighted',
  'zone-first',
  'consistent-hash',
] as const

export type PickStrategy = (typeof PICK_STRATEGIES)[number]

export interface PickOptions {
  /** For `consistent-hash`: what should stay together, such as the id of a user or document. */
  readonly key?: string | undefined
  /** For `zone-first`: the caller's zone. */
  readonly zone?: string | undefined
  /** If none is healthy, choose a lapsed or else a critical instance. Default: no. */
  readonly orUnhealthy?: boolean | undefined
}

export const PICK_OPTIONS = knownNames<PickOptions>({
  key: true,
  zone: true,
  orUnhealthy: true,
})

/** Chooses an instance: a pure function. `turn` counts the calls; `random` is from 0 to 1. */
export function choose(
  instances: readonly Instance[],
  strategy: PickStrategy,
  options: PickOptions,
  turn: number,
  random: () => number,
): Instance | undefined {
  oneOf('strategy', strategy, PICK_STRATEGIES)
  const weighty = instances.filter(({ weight }) => weight > 0)
  const candidates = weighty.length > 0 ? weighty : instances
  switch (strategy) {
    case 'round-robin':
      return roundRobin(candidates, turn)
    case 'least-loaded':
      return leastLoaded(candidates, turn)
    case 'two-choices':
      return leastLoaded(twoOf(candidates, random), 0)
    case 'weighted':
      return byWeight(candidates, random())
    case 'zone-first': {
      const zone = required('zone', options.zone, strategy)
      const near = candidates.filter((instance) => instance.zone === zone)
      return roundRobin(near.length > 0 ? near : candidates, turn)
    }
    case 'consistent-hash':
      return byHash(candidates, required('key', options.key, strategy))
  }
}

function required(name: string, value: string | undefined, strategy: PickStrategy): string {
  if (typeof value === 'string') return value
  throw invalid(`${name} is ${show(value)}: the strategy '${strategy}' needs a string`)
}

function roundRobin(instances: readonly Instance[], turn: number): Instance | undefined {
  return instances[turn % instances.length]
}

/** Instances with the same load take turns. */
function leastLoaded(instances: readonly Instance[], turn: number): Instance | undefined {
  const least = instances.reduce((min, one) => Math.min(min, loadForWeight(one)), Infinity)
  return roundRobin(
    instances.filter((instance) => loadForWeight(instance) === least),
    turn,
  )
}

function loadForWeight({ load = 0, weight }: Instance): number {
  return load / (weight || 1)
}

function twoOf(instances: readonly Instance[], random: () => number): readonly Instance[] {
  if (instances.length < 2) return instances
  const first = Math.floor(random() * instances.length)
  const other = Math.floor(random() * (instances.length - 1))
  return [instances[first]!, instances[other < first ? other : other + 1]!]
}

function byWeight(instances: readonly Instance[], random: number): Instance | undefined {
  const sum = instances.reduce((total, { weight }) => total + (weight || 1), 0)
  let left = random * sum
  for (const instance of instances) {
    left -= instance.weight || 1
    if (left < 0) return instance
  }
  return instances.at(-1)
}

/**
 * Rendezvous hashing: the instance with the highest score for the key wins. A score depends only on
 * the key and the instance, so changes elsewhere do not affect it.
 */
function byHash(instances: readonly Instance[], key: string): Instance | undefined {
  let best: Instance | undefined
  let highest = -Infinity
  for (const instance of instances) {
    // This formula gives each instance keys in proportion to its weight.
    const score = (instance.weight || 1) / -Math.log(unitHash(`${key}\n${instance.id}`))
    if (score <= highest) continue
    highest = score
    best = instance
  }
  return best
}

/** Hashes a string to a number between 0 and 1, exclusive: FNV-1a twice, well mixed. */
function unitHash(input: string): number {
  let low = 0x811c9dc5
  let high = 0x9e3779b9
  for (let at = 0; at < input.length; at++) {
    const code = input.charCodeAt(at)
    low = Math.imul(low ^ code, 0x01000193)
    high = Math.imul(high ^ code, 0x85ebca6b)
  }
  return (mixBits(low) * 2 ** 21 + (mixBits(high) >>> 11) + 0.5) / 2 ** 53
}

function mixBits(hash: number): number {
  let bits = hash ^ (hash >>> 16)
  bits = Math.imul(bits, 0x85ebca6b)
  bits ^= bits >>> 13
  bits = Math.imul(bits, 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}
