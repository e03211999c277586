import { encode } from './protobuf.ts'

/** An operation or a condition of a transaction, as etcd's protobuf message. */
export type Op = Buffer

export function put(key: string, value: string | Uint8Array): Op {
  return encode({ 2: encode({ 1: key, 2: value }) })
}

export function get(key: string): Op {
  return encode({ 1: encode({ 1: key }) })
}

/** All keys from `key` up to but not including `end`, without their values. */
export function keysOf(key: string, end: string): Op {
  return encode({ 1: encode({ 1: key, 2: end, 8: 1 }) })
}

/** The first `limit` keys of a range that were put after a revision, ordered by revision. */
export function putAfter(key: string, end: string, revision: number, limit: number): Op {
  return encode({ 1: encode({ 1: key, 2: end, 3: limit, 5: 1, 6: 3, 10: revision + 1 }) })
}

/** The first key of a range, by name, that was put after a revision, without its value. */
export function firstPutAfter(key: string, end: string, revision: number): Op {
  return encode({ 1: encode({ 1: key, 2: end, 3: 1, 5: 1, 8: 1, 10: revision + 1 }) })
}

export function deleteRange(key: string, end: string): Op {
  return encode({ 3: encode({ 1: key, 2: end }) })
}

/** The condition that a key was last put at this revision; 0 means that it does not exist. */
export function isPutAt(key: string, revision: number): Op {
  return encode({ 2: 2, 3: key, 6: revision })
}

/** The condition that no key of a range was put after this revision. */
export function nonePutAfter(key: string, end: string, revision: number): Op {
  return encode({ 1: 2, 2: 2, 3: key, 6: revision + 1, 64: end })
}
