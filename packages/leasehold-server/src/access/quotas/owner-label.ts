import type { GrantRequest, Labels, Lease } from 'leasehold/port'
import { invalid, show } from 'leasehold/port'

/**
 * Every lease of a principal has this label, so that the store knows its owner: after a restart, for
 * another server, and if the access token is created again. Clients cannot set or see it.
 */
export const OWNER_LABEL = 'leasehold/principal'
/** A tag of 128 bits, in base64url, is enough to recognise a request id. */
const TAG_LENGTH = 22

export interface Owner {
  readonly name: string
  /** The tag of the request that granted the lease, if the owner has a quota. */
  readonly tag: string | undefined
}

/** The tag of the request that granted a lease. */
export function tagOf(request: string | undefined): string | undefined {
  return request?.slice(0, TAG_LENGTH)
}

/** Adds the owner to the labels of a request. A principal's name has no spaces. */
export function labelled({ labels = {} }: GrantRequest, { name, tag }: Owner): Labels {
  if (Object.hasOwn(labels, OWNER_LABEL)) {
    throw invalid(`the label ${show(OWNER_LABEL)} is reserved for the server: use another name`)
  }
  return { ...labels, [OWNER_LABEL]: tag === undefined ? name : `${name} ${tag}` }
}

export function ownerOf({ labels }: Lease): Owner | undefined {
  const [name, tag] = labels[OWNER_LABEL]?.split(' ') ?? []
  return name === undefined ? undefined : { name, tag }
}

/** A lease as clients see it. */
export function withoutOwner(lease: Lease): Lease {
  if (!Object.hasOwn(lease.labels, OWNER_LABEL)) return lease
  const { [OWNER_LABEL]: _, ...labels } = lease.labels
  return { ...lease, labels }
}
