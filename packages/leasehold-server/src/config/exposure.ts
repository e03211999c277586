import { BlockList, isIP } from 'node:net'
import { LeaseholdError, withoutPassword } from 'leasehold/port'
import type { Config } from './load-config.ts'

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/** Whether only this machine can reach this address. */
export function isLoopback(host: string): boolean {
  const family = isIP(host)
  if (family === 0) return host.toLowerCase() === 'localhost'
  return LOOPBACK.check(host, family === 6 ? 'ipv6' : 'ipv4')
}

/** Whether a server without access tokens serves everybody who can reach it. */
export function isOpenToAll({ host, tlsCa, insecureOpenNetwork }: Config['values']): boolean {
  return isLoopback(host) || insecureOpenNetwork || tlsCa !== undefined
}

/**
 * Refuses to serve a network without protection. Protection is TLS, so that nobody can eavesdrop,
 * together with access tokens or mutual TLS, so that the server knows its clients.
 */
export function checkExposure({ values, origins }: Config, hasTokens: boolean): void {
  const { host, tlsCert, tlsCa, insecureOpenNetwork } = values
  if (isLoopback(host) || insecureOpenNetwork) return
  const hasClientAuth = hasTokens || tlsCa !== undefined
  if (tlsCert !== undefined && hasClientAuth) return
  const risks = [
    ...(hasClientAuth
      ? []
      : [`anybody who reaches it can take and end every lease (${authAdvice(values.store)})`]),
    ...(tlsCert === undefined
      ? ['traffic, including access tokens, can be read (use --tls-cert and --tls-key)']
      : []),
  ]
  throw new LeaseholdError(
    'invalid-argument',
    `host is "${host}" (from ${origins.host}), which other machines can reach, and ${risks.join('; and ')}. If you trust the network, use --insecure-open-network`,
  )
}

/** How to make the server authenticate its clients. */
function authAdvice(store: string): string {
  const create = (on: string) => `'leasehold access-token create admin --right all: --store ${on}'`
  // A memory store is lost with its process, so no access token can exist before the start.
  if (store === 'memory:') {
    return `use --tls-ca, or serve 'file:<folder>' and create an access token first: ${create('file:<folder>')}`
  }
  return `create an access token first: ${create(withoutPassword(store))}; or use --tls-ca`
}
