import { type End, holders, type Key, type LeaseId } from '../../port/index.ts'
import { lineOf, type Place } from './line.ts'
import { isLeaseId, isPart, type Paths, partName } from './paths.ts'
import { type ClaimRecord, decode, type LeaseRecord } from './records.ts'
import type { Answer, Horizon, Session } from './wire/index.ts'
import { type Found, type Look, multiRead, type NodeData, sync } from './wire/index.ts'

/** How often a reading is taken again because something changed under it. */
const TRIES = 16
/** So much is asked for in one request, to stay below what a server accepts. */
const LOOK_BYTES = 400_000

/** A key as it was at one moment. */
export interface KeyState {
  readonly key: Key
  /** Its node; `undefined` where there is none, because nobody has claimed it lately. */
  readonly node: NodeData | undefined
  readonly line: readonly Place[]
  /** How many of the line hold. */
  readonly held: number
}

/** Keys with the nodes of some of their claims, all as they were at one moment. */
export interface Survey {
  readonly zxid: number
  readonly keys: readonly SurveyedKey[]
}

export interface SurveyedKey extends KeyState {
  readonly picked: readonly Picked[]
}

export interface Picked {
  readonly place: Place
  readonly index: number
  readonly token: number
  /** On the ensemble's clock. */
  readonly claimedAt: number
  readonly record: ClaimRecord
}

export interface LeaseState {
  readonly id: LeaseId
  readonly record: LeaseRecord
  readonly node: NodeData
  readonly claims: readonly LeaseClaim[]
  readonly children: readonly LeaseId[]
  readonly zxid: number
}

export interface LeaseClaim {
  readonly claim: string
  readonly token: number
  readonly keys: readonly Key[]
  /** Of the node that says which keys these are. */
  readonly version: number
  /** Of a claim that was made here: what its nodes say. */
  readonly own?: OwnNodes | undefined
  /**
   * Of a claim that was made here: how its keys stood when it came to hold them. Where a key has
   * changed hands since, its node's version is another, and what is known here is of no use.
   */
  readonly survey?: readonly SurveyedKey[] | undefined
}

export interface OwnNodes {
  /** On the ensemble's clock. */
  readonly claimedAt: number
  readonly records: ReadonlyMap<Key, ClaimRecord>
}

/** Reads the nodes of a store into what they mean. Changes nothing. */
export class Tree {
  readonly paths: Paths
  readonly main: Session
  readonly #horizon: Horizon

  constructor(paths: Paths, main: Session, horizon: Horizon) {
    this.paths = paths
    this.main = main
    this.#horizon = horizon
  }

  /** Reads several nodes at one moment, which is not before anything that this store has done. */
  async look(looks: readonly Look[], session = this.main): Promise<Answer<Found[]>> {
    const least = this.#horizon.zxid
    for (;;) {
      const answers = await Promise.all(inParts(looks).map((part) => session.call(multiRead(part))))
      const zxid = Math.min(...answers.map((answer) => answer.zxid))
      if (zxid >= least) return { zxid, value: answers.flatMap(({ value }) => value) }
      await session.call(sync(this.paths.root))
    }
  }

  /** Lets the server catch up: what is read afterwards is no older than this call. */
  async catchUp(): Promise<void> {
    await this.main.call(sync(this.paths.root))
  }

  async keys(names: readonly Key[], session = this.main): Promise<KeyState[]> {
    const { value } = await this.look(this.#keyLooks(names), session)
    return this.#keyStates(names, value)
  }

  /** Keys, and of each the nodes of the claims that `pick` chooses from the line. */
  async survey(
    names: readonly Key[],
    pick: (state: KeyState) => readonly Place[],
    session = this.main,
  ): Promise<Survey> {
    let states = names.length > 0 ? await this.keys(names, session) : []
    for (let tries = 1; ; tries++) {
      const wanted = states.map(pick)
      const looks: Look[] = wanted.flatMap((places, at) =>
        places.map(({ name }) => ({ at: 'data', path: `${this.paths.key(names[at]!)}/${name}` })),
      )
      const { zxid, value } = await this.look([...this.#keyLooks(names), ...looks], session)
      states = this.#keyStates(names, value)
      const nodes = value.slice(2 * names.length).map(({ data }) => data)
      const surveyed = join(states, wanted, nodes)
      const isSame = states.every((state, at) => sameNames(pick(state), surveyed[at]!.picked))
      if (isSame || tries === TRIES) return { zxid, keys: surveyed }
    }
  }

  async lease(id: LeaseId, session = this.main): Promise<LeaseState | undefined> {
    if (!isLeaseId(id)) return undefined
    const path = this.paths.lease(id)
    const own: Look[] = [
      { at: 'data', path },
      { at: 'children', path },
    ]
    let names: string[] = []
    for (let tries = 1; ; tries++) {
      const looks: Look[] = names.map((name) => ({ at: 'data', path: `${path}/${name}` }))
      const { zxid, value } = await this.look([...own, ...looks], session)
      const [data, children, ...claims] = value
      if (!data?.data || !children?.children) return undefined
      const found = children.children.filter((name) => name.startsWith('c')).sort()
      if (String(found) !== String(names) && tries < TRIES) {
        names = found
        continue
      }
      return {
        id,
        record: decode<LeaseRecord>(data.data.data),
        node: data.data,
        claims: names.flatMap((name, at) => leaseClaim(name, claims[at]?.data)),
        children: children.children.flatMap((name) => (name[0] === 'k' ? [name.slice(1)] : [])),
        zxid,
      }
    }
  }

  /** How a lease ended, if that is still known. */
  async endOf(id: LeaseId): Promise<End | undefined> {
    if (!isLeaseId(id)) return undefined
    const { value } = await this.look([{ at: 'data', path: this.paths.endOf(id) }])
    const node = value[0]?.data
    return node && decode<End>(node.data)
  }

  /** Those of these leases whose keeper has not been heard of. */
  async dead(places: readonly Place[]): Promise<LeaseId[]> {
    const ids = [...new Set(places.filter((each) => !each.isPermanent).map(({ lease }) => lease))]
    if (ids.length === 0) return []
    const looks: Look[] = ids.map((id) => ({ at: 'data', path: this.paths.aliveOf(id) }))
    const { value } = await this.look(looks)
    return ids.filter((_, at) => value[at]?.data === undefined)
  }

  /** The claimed keys that begin with this, by name. */
  async keysUnder(prefix: string): Promise<Key[]> {
    const parts = prefix.split('/')
    const beginning = parts.pop()!
    const above = parts.length > 0 ? `${parts.join('/')}/` : ''
    const base = above === '' ? this.paths.keys : this.paths.key(parts.join('/'))
    const found: Key[] = []
    let level = [{ path: base, name: above }]
    for (let isTop = true; level.length > 0; isTop = false) {
      const { value } = await this.look(level.map(({ path }) => ({ at: 'children', path })))
      const next: typeof level = []
      for (const [at, { children = [] }] of value.entries()) {
        const { path, name } = level[at]!
        if (!isTop && children.some((child) => !isPart(child))) found.push(name)
        for (const child of children) {
          if (!isPart(child)) continue
          const part = partName(child)
          if (isTop && !part.startsWith(beginning)) continue
          next.push({ path: `${path}/${child}`, name: isTop ? above + part : `${name}/${part}` })
        }
      }
      level = next
    }
    return found.sort()
  }

  #keyLooks(names: readonly Key[]): Look[] {
    return names.flatMap((name): Look[] => {
      const path = this.paths.key(name)
      return [
        { at: 'data', path },
        { at: 'children', path },
      ]
    })
  }

  #keyStates(names: readonly Key[], found: readonly Found[]): KeyState[] {
    return names.map((key, at) => {
      const line = lineOf(found[2 * at + 1]?.children ?? [])
      return { key, node: found[2 * at]?.data, line, held: holders(line) }
    })
  }
}

function join(
  states: readonly KeyState[],
  wanted: readonly (readonly Place[])[],
  nodes: readonly (NodeData | undefined)[],
): SurveyedKey[] {
  let at = 0
  return states.map((state, number) => {
    const picked: Picked[] = []
    for (const { name } of wanted[number]!) {
      const node = nodes[at++]
      const index = state.line.findIndex((place) => place.name === name)
      if (!node || index < 0) continue
      const { czxid: token, ctime: claimedAt } = node.stat
      const record = decode<ClaimRecord>(node.data)
      picked.push({ place: state.line[index]!, index, token, claimedAt, record })
    }
    return { ...state, picked }
  })
}

function sameNames(places: readonly Place[], picked: readonly Picked[]): boolean {
  return (
    places.length === picked.length &&
    places.every((place, at) => place.name === picked[at]!.place.name)
  )
}

/**
 * What a release of a claim that holds would read, known already from how its keys stand. Only where
 * it is exclusive: then nobody else leaves its keys' lines in a way that matters, unless by force,
 * which sets the key's node.
 */
export function surveyOf(
  { claim, token, own }: LeaseClaim,
  states: readonly KeyState[],
): SurveyedKey[] | undefined {
  if (!own) return undefined
  const { claimedAt } = own
  const surveyed: SurveyedKey[] = []
  for (const { key, node, line } of states) {
    const [place] = line
    const record = own.records.get(key)
    if (place?.claim !== claim || place.mode !== 'exclusive' || !record) return undefined
    const picked = [{ place, index: 0, token, claimedAt, record }]
    surveyed.push({ key, node, line: [place], held: 1, picked })
  }
  return surveyed
}

function leaseClaim(name: string, node: NodeData | undefined): LeaseClaim[] {
  if (!node) return []
  const { czxid: token, version } = node.stat
  return [{ claim: name.slice(1), token, keys: decode<Key[]>(node.data), version }]
}

function inParts(looks: readonly Look[]): Look[][] {
  const parts: Look[][] = [[]]
  let bytes = 0
  for (const look of looks) {
    bytes += 32 + look.path.length
    if (bytes > LOOK_BYTES) {
      parts.push([])
      bytes = 0
    }
    parts.at(-1)!.push(look)
  }
  return parts
}
