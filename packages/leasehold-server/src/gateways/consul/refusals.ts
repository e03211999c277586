import { type Call, ConsulError } from './answer.ts'

export function refuseMethod({ method }: Call, allowed: 'GET' | 'PUT'): void {
  if (method === allowed || (allowed === 'GET' && method === 'HEAD')) return
  throw new ConsulError(405, `method ${method} not allowed`)
}

/** Clients from before Consul 1.0 send some changes with GET, among them Debian's python3-consul. */
export function refuseMethodOfChange(call: Call): void {
  if (call.method !== 'GET') refuseMethod(call, 'PUT')
}

/** Better than an answer with more than what the caller wants. */
export function refuseFilter({ query }: Call): void {
  const given = ['filter', 'node-meta'].find((name) => query.has(name))
  if (given === undefined) return
  throw new ConsulError(501, `Leasehold does not have ?${given}: see its table of differences`)
}

export function unknownPath({ path }: Call): ConsulError {
  return new ConsulError(501, `Leasehold does not have /v1/${path}: see its table of differences`)
}

/** A boolean of a query, as Go reads it; `undefined` if it is none. */
export function parseBoolean(query: URLSearchParams, name: string): boolean | undefined {
  const given = query.get(name)
  if (given === null || ['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(given)) return false
  return ['', '1', 't', 'T', 'true', 'TRUE', 'True'].includes(given) ? true : undefined
}
