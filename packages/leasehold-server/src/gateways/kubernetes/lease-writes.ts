import { isDeepStrictEqual } from 'node:util'
import type { Clock, Random } from 'leasehold/port'
import {
  checkName,
  type GivenLease,
  type LeaseObject,
  leaseObject,
  readLease,
  type StoredLease,
} from './lease-object.ts'
import { type LeaseStorage, PREFIX, type Version } from './lease-storage.ts'
import { alreadyExists, badRequest, conflict, invalidField, notFound } from './status.ts'

/** Which object a request names. */
export interface Place {
  readonly namespace: string
  readonly name: string
}

/** What a write did. */
export interface Written {
  readonly object: LeaseObject
  readonly isNew: boolean
  readonly unknown: readonly string[]
}

export interface WriteOptions {
  readonly clock: Clock
  readonly random: Random
  /** Whether to answer as if it were done. */
  readonly dryRun: boolean
  /** Whether to refuse fields that a Lease does not have. */
  readonly strict: boolean
}

/** What a deletion demands of the object. */
export interface Preconditions {
  readonly uid?: unknown
  readonly resourceVersion?: unknown
}

/** A patch or deletion of any version is tried again if another client was faster, so often. */
const ATTEMPTS_MAX = 20
const SUFFIX_LENGTH = 5
const SUFFIX_LETTERS = 'bcdfghjklmnpqrstvwxz2456789'

export function keyOf({ namespace, name }: Place): string {
  return `${PREFIX}${namespace}/${name}`
}

/** Creates, changes and deletes objects as the API server of Kubernetes does. */
export class LeaseWrites {
  readonly #storage: LeaseStorage
  readonly #options: WriteOptions

  constructor(storage: LeaseStorage, options: WriteOptions) {
    this.#storage = storage
    this.#options = options
  }

  async create(namespace: string, body: unknown): Promise<Written> {
    const given = this.#read(body)
    const { generateName } = given.metadata
    if (given.name === undefined && generateName === undefined) {
      throw invalidField('', 'metadata.name', 'name or generateName is required')
    }
    const name = given.name ?? `${generateName}${this.#suffix()}`
    checkSame({ namespace, name }, given)
    if (given.resourceVersion !== undefined) {
      throw badRequest('resourceVersion must not be set on an object to be created')
    }
    return this.#create({ namespace, name: checkName(name) }, given)
  }

  /** Replaces an object. One that does not exist is created. */
  async update(place: Place, body: unknown): Promise<Written> {
    const given = this.#read(body)
    checkSame(place, given)
    const version = await this.#storage.get(keyOf(place))
    const { resourceVersion } = given
    if (version === undefined) {
      if (resourceVersion === undefined && given.uid === undefined)
        return this.#create(place, given)
      throw given.uid === undefined ? notFound(place.name) : conflict(place.name, 'it is gone')
    }
    if (resourceVersion === undefined) {
      const what = 'it is required for an update: send the one that you have read'
      throw invalidField(place.name, 'metadata.resourceVersion', what)
    }
    const object = await this.#replace(place, version, given)
    if (object === undefined) throw conflict(place.name, 'another client has changed it')
    return { object, isNew: false, unknown: given.unknown }
  }

  async patch(place: Place, apply: (before: LeaseObject) => unknown): Promise<Written> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const version = await this.#storage.get(keyOf(place))
      if (version === undefined) throw notFound(place.name)
      const given = this.#read(apply(leaseObject(version.stored, version.token)))
      checkSame(place, given)
      const object = await this.#replace(place, version, given)
      if (object !== undefined) return { object, isNew: false, unknown: given.unknown }
    }
    throw overtaken(place)
  }

  /** Returns the uid of the deleted object. */
  async delete(place: Place, { uid, resourceVersion }: Preconditions): Promise<string> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const version = await this.#storage.get(keyOf(place))
      if (version === undefined) throw notFound(place.name)
      checkExpected(place, version, { uid, resourceVersion })
      const isDone = this.#options.dryRun || (await this.#storage.remove(keyOf(place), version))
      if (isDone) return version.stored.metadata.uid
    }
    throw overtaken(place)
  }

  #read(body: unknown): GivenLease {
    const given = readLease(body)
    if (this.#options.strict && given.unknown.length > 0) {
      const fields = given.unknown.map((field) => `unknown field "${field.slice(0, 100)}"`)
      throw badRequest(`strict decoding error: ${fields.join(', ')}`)
    }
    return given
  }

  async #create(place: Place, given: GivenLease): Promise<Written> {
    const { clock, dryRun } = this.#options
    const now = new Date(clock.timeOfDay?.() ?? clock.now()).toISOString()
    const metadata = {
      ...place,
      uid: this.#uid(),
      creationTimestamp: `${now.slice(0, 19)}Z`,
      ...given.metadata,
    }
    const stored = { metadata, spec: given.spec }
    const object = dryRun
      ? await this.#createDry(place, stored)
      : await this.#storage.create(keyOf(place), stored)
    if (object === undefined) throw alreadyExists(place.name)
    return { object, isNew: true, unknown: given.unknown }
  }

  async #createDry(place: Place, stored: StoredLease): Promise<LeaseObject | undefined> {
    const existing = await this.#storage.get(keyOf(place))
    return existing === undefined ? leaseObject(stored, 0) : undefined
  }

  /** `undefined` if another client was faster. An object that does not change keeps its version. */
  async #replace(
    place: Place,
    version: Version,
    given: GivenLease,
  ): Promise<LeaseObject | undefined> {
    checkExpected(place, version, given)
    const { uid, creationTimestamp } = version.stored.metadata
    const metadata = { ...place, uid, creationTimestamp, ...given.metadata }
    // As it would be read again: without members that are undefined.
    const stored = JSON.parse(JSON.stringify({ metadata, spec: given.spec })) as StoredLease
    if (this.#options.dryRun || isDeepStrictEqual(stored, version.stored)) {
      return leaseObject(stored, version.token)
    }
    return this.#storage.replace(keyOf(place), version, stored)
  }

  #uid(): string {
    const bytes = Buffer.alloc(16, Buffer.from(this.#options.random.id(), 'base64url'))
    const hex = bytes.toString('hex')
    return [0, 8, 12, 16, 20].map((start, at, all) => hex.slice(start, all[at + 1])).join('-')
  }

  #suffix(): string {
    const letter = () =>
      SUFFIX_LETTERS[Math.floor(this.#options.random.next() * SUFFIX_LETTERS.length)]
    return Array.from({ length: SUFFIX_LENGTH }, letter).join('')
  }
}

/** The object in a body must be the one that the path names. */
function overtaken({ name }: Place): Error {
  return conflict(name, `other clients changed it ${ATTEMPTS_MAX} times meanwhile`)
}

function checkSame(place: Place, given: Pick<GivenLease, 'name' | 'namespace'>): void {
  const { name = place.name, namespace = place.namespace } = given
  if (name !== place.name) throw badRequest(`metadata.name must be "${place.name}", as in the path`)
  if (namespace !== place.namespace) {
    throw badRequest(`metadata.namespace must be "${place.namespace}", as in the path`)
  }
}

function checkExpected(place: Place, { token, stored }: Version, expected: Preconditions): void {
  const { uid = stored.metadata.uid, resourceVersion = String(token) } = expected
  if (uid !== stored.metadata.uid)
    throw conflict(place.name, 'it has another uid: it was recreated')
  if (resourceVersion === String(token)) return
  const sent = String(resourceVersion).slice(0, 32)
  throw conflict(place.name, `its resourceVersion is ${token}, and not ${sent}`)
}
