import { BlockList, isIP } from 'node:net'
import { LeaseholdError, withoutPassword } from 'leasehold/port'
import type { Config } from './load-config.ts'

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/** Whether only this machine can reach what listens there. */
export function isLoopback(host: string): boolean {
  const family = isIP(host)
  if (family === 0) return host.toLowerCase() === 'localhost'
  return LOOPBACK.check(host, family === 6 ? 'ipv6' : 'ipv4')
}

/** Whether a server that has no token lets everybody in who reaches it. */
export function isOpenToAll({ host, tlsCa, insecureOpenNetwork }: Config['values']): boolean {
  return isLoopback(host) || insecureOpenNetwork || tlsCa !== undefined
}

/**
 * Refuses to serve a network without protection. Protected is what has TLS, so that nobody listens
 * in, and knows its clients, by tokens or by mutual TLS.
 */
export function checkExposure({ values, origins }: Config, hasTokens: boolean): void {
  const { host, tlsCert, tlsCa, insecureOpenNetwork } = values
  if (isLoopback(host) || insecureOpenNetwork) return
  const isKnown = hasTokens || tlsCa !== undefined
  if (tlsCert !== undefined && isKnown) return
  const faults = [
    ...(isKnown
      ? []
      : [`anybody who reaches it may take and end every lease (${knowing(values.store)})`]),
    ...(tlsCert === undefined
      ? ['what is said can be listened to, tokens included (give --tls-cert and --tls-key)']
      : []),
  ]
  throw new LeaseholdError(
    'invalid-argument',
    `host is "${host}" (from ${origins.host}), which is not only this machine, and ${faults.join('; and ')}. To accept that, where the network itself is trusted, give --insecure-open-network`,
  )
}

/** How the server can come to know its clients before it is started. */
function knowing(store: string): string {
  const make = (on: string) => `'leasehold token create admin --right all: --store ${on}'`
  // What is made in memory is gone with the process that made it, so no token can be there first.
  if (store === 'memory:') {
    return `give --tls-ca, or serve 'file:<folder>', where a token can be made first, ${make('file:<folder>')}`
  }
  return `make a token first, ${make(withoutPassword(store))}, or give --tls-ca`
}
