import type { SeededRandom, SimNode } from 'leasehold/testing'
import { Caller } from './actors/caller.js'
import { Locker } from './actors/locker.js'
import { Parent } from './actors/parent.js'
import { Resource } from './actors/resource.js'
import { Storm } from './actors/storm.js'
import { Watcher } from './actors/watcher.js'
import type { Scene } from './scene.js'

/**
 * Who is in a world, and how busy they are. Drawn for each seed, as the faults are: a small cast
 * makes a cheap world, so that more of them can be played, and a large one shows what only happens
 * in a crowd.
 */
export interface Casting {
  /** Which store the server has. One in memory promises nothing beyond its process: it never dies. */
  readonly store: 'file' | 'memory'
  /** For each user of the client, how many locks it takes at a time. */
  readonly loops: readonly number[]
  /** How many keys they lock: with one, everybody waits for everybody. */
  readonly keys: number
  readonly callers: number
  readonly watchers: number
  readonly parents: number
  /** How many leases run out together: none, a few, or more than the store ends in one sweep. */
  readonly storm: number
  /** How many times longer than the shortest everybody rests between what they do. */
  readonly leisure: number
  /** What is tried once the world is healed, beside the death of a holder. */
  readonly finale: Finale
}

/**
 * - `old keys`: what was held in the time of trouble can be had.
 * - `revocation`: a holder hears that its lease was revoked.
 * - `lost answer`: a claim whose answer was lost, and then its holder is cut off.
 * - `dead in line`: one who waits dies, and is passed over when it would be their turn.
 */
export type Finale = 'old keys' | 'revocation' | 'lost answer' | 'dead in line'

const LOCKERS = ['ann', 'ben', 'cat']
const CALLERS = ['dan', 'eve']
const WATCHERS = ['wes', 'wim']

export function drawCasting(random: SeededRandom): Casting {
  const what = random.pick(['locks', 'calls', 'both'])
  const locks = what !== 'calls'
  // Two users of the client are always there: one must die in the end and the other take over.
  const count = what === 'locks' && random.chance(0.3) ? 3 : 2
  const loops: number[] = LOCKERS.slice(0, count).map(() => (locks ? 1 : 0))
  if (locks && random.chance(0.2)) loops[0] = 2
  return {
    store: random.chance(0.2) ? 'memory' : 'file',
    loops,
    keys: random.integer(1, 2),
    callers: what === 'locks' ? 0 : what === 'both' ? 1 : 2,
    watchers: random.pick([0, 0, 1, 2]),
    parents: random.chance(0.25) ? 1 : 0,
    storm: random.chance(0.002) ? 1100 : random.pick([0, 0, 0, 5]),
    leisure: random.pick([2, 12, 24, 24]),
    finale: random.pick(['old keys', 'revocation', 'lost answer', 'dead in line']),
  }
}

export interface Cast {
  readonly resource: Resource
  readonly lockers: readonly Locker[]
  readonly callers: readonly Caller[]
  readonly others: readonly (Parent | Storm)[]
  /** The machines of all clients. */
  readonly nodes: readonly SimNode[]
}

export function assemble(scene: Scene): Cast {
  const { casting, world } = scene
  const resource = new Resource(scene)
  const lockers = casting.loops.map((loops, at) => new Locker(scene, LOCKERS[at]!, resource, loops))
  const callers = CALLERS.slice(0, casting.callers).map((name) => new Caller(scene, name))
  const watchers = WATCHERS.slice(0, casting.watchers).map((name) => new Watcher(scene, name))
  const parents = ['pam'].slice(0, casting.parents).map((name) => new Parent(scene, name))
  const storms = casting.storm > 0 ? [new Storm(scene, 'sue', casting.storm)] : []
  for (const locker of lockers) locker.start().catch((error) => world.fail(error))
  const others = [...parents, ...storms]
  for (const actor of [...callers, ...watchers, ...others]) actor.start()
  const nodes = [...lockers, ...callers, ...watchers].map(({ node }) => node)
  return { resource, lockers, callers, others, nodes }
}
