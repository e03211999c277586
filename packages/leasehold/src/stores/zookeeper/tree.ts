import { type End, holders, type Key, type LeaseId } from '../../port/index.ts'
import { lineOf, type Place } from './line.ts'
import { isLeaseId, isPart, type Paths, partName } from './paths.ts'
import { Picture, type Wanted } from './picture.ts'
import { type ClaimRecord, decode, type LeaseRecord } from './records.ts'
import type { Answer, Horizon, Session } from './wire/index.ts'
import { type Found, type Look, multiRead, type NodeData, sync } from './wire/index.ts'

/** How often a reading is taken again because something changed under it. */
const TRIES = 16
/** So many nodes are looked at for one picture before it is taken as good enough: see `picture`. */
const LOOKS_MOST = 4000
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

/** What was found at several nodes. */
export interface Sight extends Answer<Found[]> {
  /** Nothing has changed between the first and the last of them. */
  readonly isTogether: boolean
}

/** A node below which there are keys. The first tells how the names right below it begin. */
export interface Branch {
  readonly path: string
  readonly name: Key
  readonly beginning?: string | undefined
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
  async look(looks: readonly Look[], session = this.main): Promise<Sight> {
    const least = this.#horizon.zxid
    for (;;) {
      const answers = await Promise.all(inParts(looks).map((part) => session.call(multiRead(part))))
      const zxid = Math.min(...answers.map((answer) => answer.zxid))
      const isTogether = answers.every((answer) => answer.zxid === zxid)
      if (zxid >= least) return { zxid, value: answers.flatMap(({ value }) => value), isTogether }
      await session.call(sync(this.paths.root))
    }
  }

  /**
   * Looks at all that is wanted, again and again until what is found calls for nothing else: then
   * all of it was so at one moment. Where others change things too fast for that, only what is
   * missing is looked at in the end: then nothing is left out that was there at the revision told
   * and has not gone since, and whoever watches from there on is told of all that is newer.
   */
  async picture(want: (known: Picture) => Wanted): Promise<Answer<Picture>> {
    let known = new Picture()
    for (let tries = 1, looked = 0; ; tries++) {
      const { branches, leaves } = want(known)
      const looks = [...branches, ...leaves]
      const { zxid, value, isTogether } = await this.look(looks)
      known = new Picture()
      known.add(looks, value)
      looked += looks.length
      const isLast = tries === TRIES || (tries > 1 && looked > LOOKS_MOST)
      const isWhole = !(await this.#fill(known, want, isLast))
      if (isLast || (isWhole && isTogether)) return { zxid, value: known }
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
    let wanted: (readonly Place[])[] = names.map(() => [])
    for (let tries = 0, before = 0; ; tries++) {
      const looks = wanted.flatMap((places, at) =>
        places.map(({ name }) => dataOf(`${this.paths.key(names[at]!)}/${name}`)),
      )
      const { zxid, value } = await this.look([...this.#keyLooks(names), ...looks], session)
      const states = this.#keyStates(names, value)
      const nodes = value.slice(2 * names.length).map(({ data }) => data)
      const keys = join(states, wanted, nodes)
      if (states.every((state, at) => sameNames(pick(state), keys[at]!.picked))) {
        return { zxid, keys }
      }
      // Who came after the lines were read before is not in it: it is told as no newer than that.
      if (tries === TRIES) return { zxid: before, keys }
      before = zxid
      wanted = states.map(pick)
    }
  }

  async lease(id: LeaseId, session = this.main): Promise<LeaseState | undefined> {
    if (!isLeaseId(id)) return undefined
    const path = this.paths.lease(id)
    const own = [dataOf(path), namesBelow({ path })]
    let names: string[] = []
    for (let tries = 1, before = 0; ; tries++) {
      const looks = names.map((name) => dataOf(`${path}/${name}`))
      const { zxid, value } = await this.look([...own, ...looks], session)
      const [data, children, ...claims] = value
      if (!data?.data || !children?.children) return undefined
      const found = children.children.filter((name) => name.startsWith('c')).sort()
      const isSame = String(found) === String(names)
      if (!isSame && tries < TRIES) {
        names = found
        before = zxid
        continue
      }
      return {
        id,
        record: decode<LeaseRecord>(data.data.data),
        node: data.data,
        claims: names.flatMap((name, at) => leaseClaim(name, claims[at]?.data)),
        children: children.children.flatMap((name) => (name[0] === 'k' ? [name.slice(1)] : [])),
        zxid: isSame ? zxid : before,
      }
    }
  }

  /** The same where nobody is to be told in vain that it is gone: our server may lag behind. */
  async leaseForSure(id: LeaseId): Promise<LeaseState | undefined> {
    const state = await this.lease(id)
    if (state || !isLeaseId(id)) return state
    await this.catchUp()
    return this.lease(id)
  }

  /** How a lease ended, if that is still known. */
  async endOf(id: LeaseId): Promise<End | undefined> {
    if (!isLeaseId(id)) return undefined
    const { value } = await this.look([dataOf(this.paths.endOf(id))])
    const node = value[0]?.data
    return node && decode<End>(node.data)
  }

  /** Those of these leases whose keeper has not been heard of. */
  async dead(places: readonly Place[]): Promise<LeaseId[]> {
    const ids = [...new Set(places.filter((each) => !each.isPermanent).map(({ lease }) => lease))]
    if (ids.length === 0) return []
    const { value } = await this.look(ids.map((id) => dataOf(this.paths.aliveOf(id))))
    return ids.filter((_, at) => value[at]?.data === undefined)
  }

  /** The claimed keys that begin with this, by name, though not all at one moment. */
  async keysUnder(prefix: string): Promise<Key[]> {
    const known = new Picture()
    const top = this.top(prefix)
    const want = () => ({ branches: branchesIn(known, top).map(namesBelow), leaves: [] })
    await this.#fill(known, want, true)
    return claimedIn(known, branchesIn(known, top))
  }

  /** The node below which all keys are that begin with this. */
  top(prefix: string): Branch {
    const parts = prefix.split('/')
    const beginning = parts.pop()!
    if (parts.length === 0) return { path: this.paths.keys, name: '', beginning }
    const above = parts.join('/')
    return { path: this.paths.key(above), name: `${above}/`, beginning }
  }

  /** Adds what is wanted and not known yet, level by level. Answers whether there was any. */
  async #fill(
    known: Picture,
    want: (known: Picture) => Wanted,
    withLeaves: boolean,
  ): Promise<boolean> {
    for (let isFirst = true; ; isFirst = false) {
      const { branches, leaves } = want(known)
      const missing = branches.filter((look) => !known.has(look))
      const unknown = leaves.filter((look) => !known.has(look))
      if (missing.length + unknown.length === 0) return !isFirst
      if (!withLeaves && missing.length === 0) return true
      const looks = withLeaves ? [...missing, ...unknown] : missing
      known.add(looks, (await this.look(looks)).value)
    }
  }

  #keyLooks(names: readonly Key[]): Look[] {
    return names.flatMap((name) => {
      const path = this.paths.key(name)
      return [dataOf(path), namesBelow({ path })]
    })
  }

  #keyStates(names: readonly Key[], found: readonly Found[]): KeyState[] {
    return names.map((key, at) => {
      const line = lineOf(found[2 * at + 1]?.children ?? [])
      return { key, node: found[2 * at]?.data, line, held: holders(line) }
    })
  }
}

export function dataOf(path: string): Look {
  return { at: 'data', path }
}

export function namesBelow({ path }: { readonly path: string }): Look {
  return { at: 'children', path }
}

/** All nodes below a branch that a picture tells of, and itself; only those with keys after one. */
export function branchesIn(known: Picture, top: Branch, after = ''): Branch[] {
  const found = [top]
  // The list grows while it is gone through.
  for (const { path, name, beginning } of found) {
    for (const child of known.children(path)) {
      if (!isPart(child)) continue
      // Most names are written as they are, and there may be very many.
      const part = child.includes('%') ? partName(child) : child.slice(1)
      if (beginning !== undefined && !part.startsWith(beginning)) continue
      const below = beginning === undefined ? `${name}/${part}` : name + part
      // Of all names below it, `name/…`, none comes after `name0`: that is the sign next to a slash.
      if (`${below}0` > after) found.push({ path: `${path}/${child}`, name: below })
    }
  }
  return found
}

/** Those of the nodes that are claimed keys, by name. */
export function claimedIn(known: Picture, branches: readonly Branch[], after = ''): Key[] {
  const claimed = branches.filter(
    ({ path, name, beginning }) =>
      beginning === undefined &&
      name > after &&
      known.children(path).some((child) => !isPart(child)),
  )
  return claimed.map(({ name }) => name).sort()
}

export function join(
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

export function leaseClaim(name: string, node: NodeData | undefined): LeaseClaim[] {
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
