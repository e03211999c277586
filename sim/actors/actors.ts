import type { SeededRandom, SimNode } from 'leasehold/testing'
import { PROGRESS_CHECKS, type ProgressCheckName } from '../progress/progress-checks.js'
import type { Harness } from '../world/harness.js'
import { Breaker } from './breaker.js'
import { Caller } from './caller.js'
import { LocalCaller } from './local-caller.js'
import { LOCK_KEYS } from './lock-request.js'
import { Locker } from './locker.js'
import { MassExpiry } from './mass-expiry.js'
import { Parent } from './parent.js'
import { Resource } from './resource.js'
import { Watcher } from './watcher.js'
import { SharedKnowledge, WholePortUser } from './whole-port-user.js'

/**
 * The actors of a world, and how busy they are. Each seed draws its own setup, as it draws its faults.
 * A small world is cheap, so more of them can run. A large one shows what only happens under load.
 */
export interface WorldSetup {
  /**
   * The server's store. A server with a store in memory never crashes, because the store would lose
   * everything. With `log` there are several servers, each with a replica on one shared log.
   */
  readonly store: 'file' | 'memory' | 'log'
  /** The number of servers: more than one only with `log`. */
  readonly servers: number
  /** How clients reach the server: by single messages, or by a real stream. */
  readonly transport: 'messages' | 'stream'
  /** For each locker, how many locks it takes at a time. */
  readonly loops: readonly number[]
  /** The number of keys that lockers use. With one key, all of them compete. */
  readonly keys: number
  readonly callers: number
  readonly watchers: number
  readonly parents: number
  /** How many actors use the whole port, and whether one breaks the locks of others. */
  readonly wholePortUsers: number
  readonly breaker: boolean
  /** Whether servers on a log are also called in their own processes. */
  readonly local: boolean
  /** How many leases expire together: none, a few, or more than the store ends in one sweep. */
  readonly massExpiry: number
  /** A factor for the pauses of all actors between two operations. */
  readonly restFactor: number
  /** What is checked in the healed world, beside the death of a holder. */
  readonly finalCheck: FinalCheck
}

/**
 * - `old keys`: keys that were held during the faults can be locked again.
 * - `revocation`: a holder is notified that its lease was revoked.
 * - `lost answer`: the answer to a claim is lost, and then its holder is cut off.
 * - `dead waiter`: a waiter dies, and the key goes to the next one.
 * - and those of `progress-checks.ts`.
 */
export type FinalCheck =
  | 'old keys'
  | 'revocation'
  | 'lost answer'
  | 'dead waiter'
  | ProgressCheckName

const OLDER_CHECKS: readonly FinalCheck[] = ['old keys', 'revocation', 'lost answer', 'dead waiter']
const NEWER_CHECKS = (Object.keys(PROGRESS_CHECKS) as ProgressCheckName[]).filter(
  (name) => name !== 'tied client',
)

/** The kind of world: one server with its own store, or replicas on a shared log. */
export type Worlds = 'server' | 'replicas'

const LOCKERS = ['ann', 'ben', 'cat']
const CALLERS = ['dan', 'eve']
const WHOLE_PORT_USERS = ['fay', 'gus']
const WATCHERS = ['wes', 'wim']

export function drawSetup(random: SeededRandom, worlds: Worlds): WorldSetup {
  const setup = drawServerSetup(random)
  if (worlds === 'server') return setup
  const finalCheck = setup.finalCheck === 'tied client' ? 'old keys' : setup.finalCheck
  const servers = random.integer(1, 4)
  const local = random.chance(0.4)
  return { ...setup, store: 'log', servers, local, transport: 'messages', finalCheck }
}

function drawServerSetup(random: SeededRandom): WorldSetup {
  const what = random.pick(['locks', 'calls', 'both', 'deals'])
  const locks = what === 'locks' || what === 'both'
  // There are always two lockers: in the end one must die and the other take over.
  const count = what === 'locks' && random.chance(0.3) ? 3 : 2
  const loops: number[] = LOCKERS.slice(0, count).map(() => (locks ? 1 : 0))
  if (locks && random.chance(0.2)) loops[0] = 2
  const transport = what === 'locks' && random.chance(0.4) ? 'stream' : 'messages'
  return {
    store: random.chance(0.2) ? 'memory' : 'file',
    servers: 1,
    transport,
    loops,
    keys: random.integer(1, 2),
    callers: what === 'both' ? 1 : what === 'calls' ? 2 : 0,
    wholePortUsers: what === 'deals' ? 2 : 0,
    local: false,
    breaker: what === 'locks' && random.chance(0.5),
    watchers: random.pick([0, 0, 1, 2]),
    parents: random.chance(0.25) ? 1 : 0,
    massExpiry: random.chance(0.002) ? 1100 : random.pick([0, 0, 0, 5]),
    restFactor: random.pick([2, 16, 32, 32]),
    finalCheck:
      transport === 'stream' && random.chance(0.4)
        ? 'tied client'
        : random.pick(random.chance(0.5) ? OLDER_CHECKS : NEWER_CHECKS),
  }
}

export interface Actors {
  readonly resource: Resource
  readonly lockers: readonly Locker[]
  readonly callers: readonly (Caller | WholePortUser)[]
  readonly others: readonly (Parent | MassExpiry | Breaker | LocalCaller)[]
  /** The machines of all clients. */
  readonly nodes: readonly SimNode[]
}

export function startActors(harness: Harness): Actors {
  const { setup, world } = harness
  const resource = new Resource(harness)
  const lockers = setup.loops.map((loops, at) => new Locker(harness, LOCKERS[at]!, resource, loops))
  const table = new SharedKnowledge()
  const callers = [
    ...CALLERS.slice(0, setup.callers).map((name) => new Caller(harness, name)),
    ...WHOLE_PORT_USERS.slice(0, setup.wholePortUsers).map(
      (name) => new WholePortUser(harness, name, table),
    ),
  ]
  const breakers = setup.breaker ? [new Breaker(harness, 'bob', LOCK_KEYS)] : []
  const watchers = WATCHERS.slice(0, setup.watchers).map((name) => new Watcher(harness, name))
  const parents = ['pam'].slice(0, setup.parents).map((name) => new Parent(harness, name))
  const massExpiries =
    setup.massExpiry > 0 ? [new MassExpiry(harness, 'sue', setup.massExpiry)] : []
  for (const locker of lockers) locker.start().catch((error) => world.fail(error))
  const servers = setup.local ? harness.servers.all : []
  const locals = servers.map((server) => new LocalCaller(harness, server))
  const others = [...parents, ...massExpiries, ...breakers, ...locals]
  for (const actor of [...callers, ...watchers, ...others]) actor.start()
  const nodes = [...lockers, ...callers, ...watchers].map(({ node }) => node)
  return { resource, lockers, callers, others, nodes }
}
