import { ASKS_PREFIX, type Ask, askOf } from '../../src/agents/asks.ts'
import { noteOf } from '../../src/agents/hold-note.ts'
import {
  AGENTS_SERVICE,
  agentId,
  agentTenant,
  claimsAhead,
  type NotedHold,
  notedHolds,
} from '../../src/agents/noted-holds.ts'
import type { ClaimRow, Mirror } from './mirror.ts'
import { poolNames, poolOf } from './recipes/pools.ts'
import { keysOf, type PoolStatus, unitsOf } from './recipes/recipe-functions.ts'
import { type InstanceView, instancesOf } from './recipes/services.ts'

/** A hold of an agent, or a place in a queue. */
export interface AgentHold {
  /** Names it; unique among all holds. */
  readonly id: string
  readonly agent: string
  readonly purpose: string
  /** What the agent asked for, as it named it. */
  readonly things: readonly string[]
  readonly isShared: boolean
  readonly since: number
  /** The latest end of a hold. */
  readonly until: number
  readonly lease: string
  /** The claim that says most about it, and all its keys. */
  readonly key: string
  readonly token: number
  readonly keys: readonly string[]
  /** The pool that it is from, if any. Its holder cannot be asked. */
  readonly pool?: string | undefined
  /** Requests to give it back, the oldest first. */
  readonly asks: readonly Ask[]
}

/** What a waiting agent waits for: the hold of another agent, or of any other holder. */
export interface Blocker {
  readonly agent: string
  /** Whether it holds; otherwise it waits ahead. */
  readonly isHeld: boolean
  /** The hold, unless its holder is not an agent. */
  readonly hold: AgentHold | undefined
  readonly key: string
  readonly since: number
}

export interface AgentWait extends AgentHold {
  /** Everybody ahead, the holders first. */
  readonly ahead: readonly Blocker[]
}

export interface AgentRow {
  readonly name: string
  /** What it announced, if it did. */
  readonly announced: InstanceView | undefined
  readonly doing: string | undefined
  readonly paths: readonly string[]
  readonly capabilities: readonly string[]
  readonly holds: readonly AgentHold[]
  readonly waits: readonly AgentWait[]
}

/** All agents: those that announced themselves, and those that hold or wait. By name. */
export function agentsOf(mirror: Mirror, now: number): AgentRow[] {
  const rows = new Map<string, Editable>()
  for (const announced of instancesOf(mirror, AGENTS_SERVICE)) {
    const { id, metadata, capabilities } = announced
    const paths = metadata['paths']?.split('\n') ?? []
    const doing = metadata['doing']
    rows.set(id, { name: id, announced, doing, paths, capabilities, holds: [], waits: [] })
  }
  const noted = notedHolds(claimsIn(mirror))
  const holds = new Map(noted.map((hold) => [hold.note.ref, holdOf(mirror, hold)]))
  for (const { note, isHeld, claims } of noted) {
    const hold = holds.get(note.ref)!
    const row = rowOf(rows, note.agent)
    if (isHeld) row.holds.push(hold)
    else row.waits.push({ ...hold, ahead: aheadOf(mirror, note.ref, claims, holds) })
  }
  addPools(mirror, now, rows)
  const byAge = (a: AgentHold, b: AgentHold) => a.since - b.since
  for (const { holds: own, waits } of rows.values()) {
    own.sort(byAge)
    waits.sort(byAge)
  }
  return [...rows.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** All waits of these agents, the longest first. */
export function waitsOf(agents: readonly AgentRow[]): AgentWait[] {
  return agents.flatMap(({ waits }) => waits).sort((a, b) => a.since - b.since)
}

/** The agents that wait for each hold, by its id. */
export function waitersOf(agents: readonly AgentRow[]): ReadonlyMap<string, readonly string[]> {
  const waiters = new Map<string, string[]>()
  for (const { agent, ahead } of waitsOf(agents)) {
    for (const { hold, isHeld } of ahead) {
      if (hold === undefined || !isHeld) continue
      const known = waiters.get(hold.id)
      if (known === undefined) waiters.set(hold.id, [agent])
      else known.push(agent)
    }
  }
  return waiters
}

export interface AgentFilter {
  /** Part of a name, of the work, or of what is held or wanted. */
  readonly text: string
  readonly isWaiting: boolean
  readonly isAsked: boolean
}

export function findAgents(
  agents: readonly AgentRow[],
  { text, isWaiting, isAsked }: AgentFilter,
): AgentRow[] {
  const wanted = text.trim().toLowerCase()
  return agents.filter(
    (row) =>
      (!isWaiting || row.waits.length > 0) &&
      (!isAsked || row.holds.some(({ asks }) => asks.length > 0)) &&
      textOf(row).includes(wanted),
  )
}

function textOf({ name, doing = '', paths, capabilities, holds, waits }: AgentRow): string {
  const held = [...holds, ...waits].flatMap(({ things, purpose, keys }) => [
    ...[...things, ...keys, purpose],
  ])
  return [name, doing, ...paths, ...capabilities, ...held].join('\n').toLowerCase()
}

interface Editable extends AgentRow {
  readonly holds: AgentHold[]
  readonly waits: AgentWait[]
}

/** The row of an agent. An announced one has the id of its registration. */
function rowOf(rows: Map<string, Editable>, agent: string): Editable {
  const id = agentId(agent)
  const known = rows.get(id)
  if (known !== undefined) return known
  const added: Editable = {
    ...{ name: agent, announced: undefined, doing: undefined },
    ...{ paths: [], capabilities: [], holds: [], waits: [] },
  }
  rows.set(id, added)
  return added
}

function* claimsIn({ noted, keys }: Mirror): Iterable<ClaimRow> {
  for (const key of noted.keys()) yield* keys.get(key)?.claims ?? []
}

function holdOf(mirror: Mirror, { note, claims, since, main }: NotedHold<ClaimRow>): AgentHold {
  const { ref, agent, purpose, for: things, max = Infinity } = note
  return {
    ...{ id: ref, agent, purpose, things, since },
    isShared: main.mode === 'shared',
    until: since + max,
    lease: main.lease,
    key: main.key,
    token: main.token,
    keys: claims.map(({ key }) => key),
    asks: asksOf(mirror, ref),
  }
}

function asksOf(mirror: Mirror, ref: string): Ask[] {
  const path = `${ASKS_PREFIX}${ref}`
  const names = mirror.internal.find(path)?.names?.list() ?? []
  return names
    .flatMap((name) => mirror.keys.get(`${path}/${name}`)?.claims.slice(0, 1) ?? [])
    .map(askOf)
    .sort((a, b) => a.at - b.at)
}

function aheadOf(
  mirror: Mirror,
  ref: string,
  claims: readonly ClaimRow[],
  holds: ReadonlyMap<string, AgentHold>,
): Blocker[] {
  const found = new Map<string, Blocker>()
  for (const { key, mode, heldSince } of claims) {
    if (heldSince !== undefined) continue
    for (const claim of claimsAhead(mirror.keys.get(key)?.claims ?? [], ref, mode)) {
      const other = noteOf(claim)
      const id = other?.ref ?? `${claim.lease}/${claim.token}`
      if (found.has(id)) continue
      const isHeld = claim.heldSince !== undefined
      const hold = other && holds.get(other.ref)
      const since = claim.heldSince ?? claim.claimedAt
      found.set(id, { agent: other?.agent ?? claim.holder, isHeld, hold, key, since })
    }
  }
  return [...found.values()].sort((a, b) => Number(b.isHeld) - Number(a.isHeld))
}

/** What known agents hold of pools, or wait for. A pool knows an agent as its tenant. */
function addPools(mirror: Mirror, now: number, rows: ReadonlyMap<string, Editable>): void {
  const byTenant = new Map([...rows.values()].map((row) => [agentTenant(row.name), row]))
  if (byTenant.size === 0) return
  for (const name of poolNames(mirror)) {
    const pool = poolOf(mirror, name, now, () => undefined)
    if (pool === undefined) continue
    const permits = pool.resources.flatMap((resource) =>
      resource.permits.map((permit) =>
        poolHold(mirror, name, unitsOf(name, resource), `${name}/${resource.name}`, permit),
      ),
    )
    for (const permit of permits) byTenant.get(permit.agent)?.holds.push(permit)
    const ahead = permits.map((hold) => {
      const { agent, key, since } = hold
      return { agent, isHeld: true, hold, key, since }
    })
    for (const waiter of pool.queue) {
      const { queue } = keysOf(name)
      const wait = poolHold(mirror, name, [queue], `${waiter.count} of pool ${name}`, waiter)
      byTenant.get(wait.agent)?.waits.push({ ...wait, ahead })
    }
  }
}

/** A permit of a pool, or a place in its queue, which is a claim on one of these keys. */
function poolHold(
  mirror: Mirror,
  pool: string,
  keys: readonly string[],
  thing: string,
  {
    tenant: agent,
    kind: purpose,
    token,
    since,
  }: Pick<PoolStatus['queue'][number], 'tenant' | 'kind' | 'token' | 'since'>,
): AgentHold {
  const claims = keys.flatMap((key) => mirror.keys.get(key)?.claims ?? [])
  const claim = claims.find((it) => it.token === token)
  const key = claim?.key ?? keys[0]!
  return {
    ...{ id: `${key} ${token}`, agent, purpose, since, pool, key, token, keys: [key] },
    ...{ things: [thing], isShared: false, until: Infinity, lease: claim?.lease ?? '', asks: [] },
  }
}
