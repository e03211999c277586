import type { SeededRandom, SimNode } from 'leasehold/testing'
import { Breaker } from './actors/breaker.js'
import { Caller } from './actors/caller.js'
import { Dealer, Table } from './actors/dealer.js'
import { LocalCaller } from './actors/local-caller.js'
import { Locker } from './actors/locker.js'
import { Parent } from './actors/parent.js'
import { Resource } from './actors/resource.js'
import { Storm } from './actors/storm.js'
import { Watcher } from './actors/watcher.js'
import { LOCK_KEYS } from './actors/wish.js'
import { FINALES, type FinaleName } from './finales.js'
import type { Scene } from './scene.js'

/**
 * Who is in a world, and how busy they are. Drawn for each seed, as the faults are: a small cast
 * makes a cheap world, so that more of them can be played, and a large one shows what only happens
 * in a crowd.
 */
export interface Casting {
  /**
   * Which store the server has. One in memory promises nothing beyond its process: it never dies.
   * With `log` there are several servers, each with a replica on one shared log.
   */
  readonly store: 'file' | 'memory' | 'log'
  /** How many servers there are: more than one only with `log`. */
  readonly servers: number
  /** How users of the client reach it: by single messages, or by a real stream. */
  readonly line: 'messages' | 'stream'
  /** For each user of the client, how many locks it takes at a time. */
  readonly loops: readonly number[]
  /** How many keys they lock: with one, everybody waits for everybody. */
  readonly keys: number
  readonly callers: number
  readonly watchers: number
  readonly parents: number
  /** How many use the whole port, and whether somebody takes by force what lockers hold. */
  readonly dealers: number
  readonly breaker: boolean
  /** Whether servers on a log are also called in their own processes. */
  readonly local: boolean
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
 * - and those of `finales.ts`.
 */
export type Finale = 'old keys' | 'revocation' | 'lost answer' | 'dead in line' | FinaleName

const OLDER_FINALES: readonly Finale[] = ['old keys', 'revocation', 'lost answer', 'dead in line']
const NEWER_FINALES = (Object.keys(FINALES) as FinaleName[]).filter(
  (name) => name !== 'tied client',
)

/** What a world is about: one server with a store of its own, or replicas on a shared log. */
export type Worlds = 'server' | 'replicas'

const LOCKERS = ['ann', 'ben', 'cat']
const CALLERS = ['dan', 'eve']
const DEALERS = ['fay', 'gus']
const WATCHERS = ['wes', 'wim']

export function drawCasting(random: SeededRandom, worlds: Worlds): Casting {
  const casting = drawServerCasting(random)
  if (worlds === 'server') return casting
  const finale = casting.finale === 'tied client' ? 'old keys' : casting.finale
  const servers = random.integer(1, 4)
  const local = random.chance(0.4)
  return { ...casting, store: 'log', servers, local, line: 'messages', finale }
}

function drawServerCasting(random: SeededRandom): Casting {
  const what = random.pick(['locks', 'calls', 'both', 'deals'])
  const locks = what === 'locks' || what === 'both'
  // Two users of the client are always there: one must die in the end and the other take over.
  const count = what === 'locks' && random.chance(0.3) ? 3 : 2
  const loops: number[] = LOCKERS.slice(0, count).map(() => (locks ? 1 : 0))
  if (locks && random.chance(0.2)) loops[0] = 2
  const line = what === 'locks' && random.chance(0.4) ? 'stream' : 'messages'
  return {
    store: random.chance(0.2) ? 'memory' : 'file',
    servers: 1,
    line,
    loops,
    keys: random.integer(1, 2),
    callers: what === 'both' ? 1 : what === 'calls' ? 2 : 0,
    dealers: what === 'deals' ? 2 : 0,
    local: false,
    breaker: what === 'locks' && random.chance(0.5),
    watchers: random.pick([0, 0, 1, 2]),
    parents: random.chance(0.25) ? 1 : 0,
    storm: random.chance(0.002) ? 1100 : random.pick([0, 0, 0, 5]),
    leisure: random.pick([2, 16, 32, 32]),
    finale:
      line === 'stream' && random.chance(0.4)
        ? 'tied client'
        : random.pick(random.chance(0.5) ? OLDER_FINALES : NEWER_FINALES),
  }
}

export interface Cast {
  readonly resource: Resource
  readonly lockers: readonly Locker[]
  readonly callers: readonly (Caller | Dealer)[]
  readonly others: readonly (Parent | Storm | Breaker | LocalCaller)[]
  /** The machines of all clients. */
  readonly nodes: readonly SimNode[]
}

export function assemble(scene: Scene): Cast {
  const { casting, world } = scene
  const resource = new Resource(scene)
  const lockers = casting.loops.map((loops, at) => new Locker(scene, LOCKERS[at]!, resource, loops))
  const table = new Table()
  const callers = [
    ...CALLERS.slice(0, casting.callers).map((name) => new Caller(scene, name)),
    ...DEALERS.slice(0, casting.dealers).map((name) => new Dealer(scene, name, table)),
  ]
  const breakers = casting.breaker ? [new Breaker(scene, 'bob', LOCK_KEYS)] : []
  const watchers = WATCHERS.slice(0, casting.watchers).map((name) => new Watcher(scene, name))
  const parents = ['pam'].slice(0, casting.parents).map((name) => new Parent(scene, name))
  const storms = casting.storm > 0 ? [new Storm(scene, 'sue', casting.storm)] : []
  for (const locker of lockers) locker.start().catch((error) => world.fail(error))
  const servers = casting.local ? scene.servers.all : []
  const locals = servers.map((server) => new LocalCaller(scene, server))
  const others = [...parents, ...storms, ...breakers, ...locals]
  for (const actor of [...callers, ...watchers, ...others]) actor.start()
  const nodes = [...lockers, ...callers, ...watchers].map(({ node }) => node)
  return { resource, lockers, callers, others, nodes }
}
