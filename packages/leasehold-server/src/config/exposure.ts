import { LeaseholdError, withoutPassword } from 'leasehold/port'
import { CREATE_ADMINISTRATOR } from '../access/index.ts'
import { isLoopback } from './listen-address.ts'
import type { Config } from './load-config.ts'

/** Whether a server without access tokens serves everybody who can reach it. */
export function isOpenToAll({ host, xds, tlsCa, insecureOpenNetwork }: Config['values']): boolean {
  const isLocal = isLoopback(host) && (xds === undefined || isLoopback(xds.host))
  return isLocal || insecureOpenNetwork || tlsCa !== undefined
}

/**
 * Refuses to serve a network without protection. Protection is TLS, so that nobody can eavesdrop,
 * together with access tokens or mutual TLS, so that the server knows its clients.
 */
export function checkExposure({ values, origins }: Config, hasTokens: boolean): void {
  const { tlsCert, tlsCa, insecureOpenNetwork, xds } = values
  // The gateway for xDS has the same access tokens and the same TLS.
  const setting = isLoopback(values.host) && xds !== undefined ? 'xds' : 'host'
  const host = setting === 'xds' ? xds!.host : values.host
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
    `${setting} is "${host}" (from ${origins[setting]}), which other machines can reach, and ${risks.join('; and ')}. If you trust the network, use --insecure-open-network`,
  )
}

/** DNS has no access tokens, and its answers are longer than its queries. */
export function warnOfOpenDns({ values: { dns } }: Config, warn: (message: string) => void): void {
  if (dns === undefined || isLoopback(dns.host)) return
  warn(
    `DNS listens on ${dns.host}, which other machines can reach. DNS has no access rights: all of them can read the names and addresses of all services. Let a firewall allow only your own networks`,
  )
}

/** How to make the server authenticate its clients. */
function authAdvice(store: string): string {
  const create = (on: string) => `'${CREATE_ADMINISTRATOR} --store ${on}'`
  // A memory store is lost with its process, so no access token can exist before the start.
  if (store === 'memory:') {
    return `use --tls-ca, or serve 'file:<folder>' and create an access token first: ${create('file:<folder>')}`
  }
  return `create an access token first: ${create(withoutPassword(store))}; or use --tls-ca`
}
