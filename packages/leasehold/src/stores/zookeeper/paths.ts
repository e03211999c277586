import { type Key, type LeaseId, type RequestId, sha256 } from '../../port/index.ts'

/** Leases, and the counters that claims raise, are spread over so many nodes each. */
export const BUCKETS = 64

/**
 * Where everything is.
 *
 * - `j/<name>`: the journal, a node for each call that changed something or that is remembered. The
 *   name is made from the request id, or is the call's own; a call that is sent twice finds it.
 * - `l/<bucket>/<lease>`: a lease. Below it `c<claim>` for each call that claimed, with its keys, and
 *   `k<lease>` for each lease under it.
 * - `a/<lease>`: the ephemeral node of a lease whose ttl is finite. Gone, it says that whoever kept
 *   the lease has not been heard of for as long as its session's timeout.
 * - `e/<lease>`: how a lease ended.
 * - `k/…`: keys, a container for each part between slashes; in it `s<part>` the parts below it, and
 *   `c…` the claims on the key that ends here. The server removes containers that are empty.
 * - `v/<bucket>`: each claim raises the version of its key's, so that `ifFree` can tell that nobody
 *   has come since it looked.
 */
export class Paths {
  readonly root: string
  readonly journal: string
  readonly alive: string
  readonly ended: string
  readonly leases: string
  readonly keys: string
  readonly counters: string
  /** The ephemeral node of the store that keeps the journal short. */
  readonly trimmer: string

  constructor(root: string) {
    this.root = root
    this.journal = `${root}/j`
    this.alive = `${root}/a`
    this.ended = `${root}/e`
    this.leases = `${root}/l`
    this.keys = `${root}/k`
    this.counters = `${root}/v`
    this.trimmer = `${root}/t`
  }

  /** All nodes that a store needs before it can be used, parents first. */
  get fixed(): string[] {
    const parts = this.root.split('/').slice(1)
    const above = parts.map((_, at) => `/${parts.slice(0, at + 1).join('/')}`)
    const folders = [this.journal, this.alive, this.ended, this.leases, this.keys, this.counters]
    const buckets = Array.from({ length: BUCKETS }, (_, at) => [
      this.leaseBucket(at),
      `${this.counters}/${at}`,
    ])
    return [...above, ...folders, ...buckets.flat()]
  }

  entry(name: string): string {
    return `${this.journal}/${name}`
  }

  leaseBucket(bucket: number): string {
    return `${this.leases}/${bucket}`
  }

  lease(id: LeaseId): string {
    return `${this.leaseBucket(bucketOf(id))}/${id}`
  }

  aliveOf(id: LeaseId): string {
    return `${this.alive}/${id}`
  }

  endOf(id: LeaseId): string {
    return `${this.ended}/${id}`
  }

  claimsOf(id: LeaseId, claim: string): string {
    return `${this.lease(id)}/c${claim}`
  }

  childOf(parent: LeaseId, id: LeaseId): string {
    return `${this.lease(parent)}/k${id}`
  }

  key(key: Key): string {
    return `${this.keys}/${partsOf(key)}`
  }

  /** The containers on the way to a key, the key's own last. */
  containers(key: Key): string[] {
    const parts = partsOf(key).split('/')
    return parts.map((_, at) => `${this.keys}/${parts.slice(0, at + 1).join('/')}`)
  }

  counter(key: Key): string {
    return `${this.counters}/${bucketOf(key)}`
  }
}

/** Names may hold any character; of ZooKeeper's paths, only ASCII is sure to come back as it was. */
function partsOf(key: Key): string {
  return `s${encodeURIComponent(key).replaceAll('%2F', '/s')}`
}

export function isPart(name: string): boolean {
  return name.startsWith('s')
}

export function partName(name: string): string {
  return decodeURIComponent(name.slice(1))
}

/** FNV-1a: spreads names evenly, and everyone comes to the same bucket. */
export function bucketOf(name: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at++) {
    hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  }
  return (hash >>> 0) % BUCKETS
}

/** Request ids that can be names as they are; all others are made into one. */
const PLAIN = /^[\w-]{1,64}$/

/** What a call is named in the journal: by its request id, or else by a name of its own. */
export function entryName(request: RequestId | undefined, own: string): string {
  if (request === undefined) return `o${own}`
  return PLAIN.test(request) ? `p${request}` : `r${sha256(request)}`
}

/** Whether a text can be the id of a lease: it comes from callers, and becomes part of a path. */
export function isLeaseId(id: LeaseId): boolean {
  return typeof id === 'string' && /^[\w-]{1,64}$/.test(id)
}
