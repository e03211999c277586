import { BlockList, isIP } from 'node:net'

/** Where a server listens, and where the command line looks for one, if nothing else is said. */
export const DEFAULT_HOST = '127.0.0.1'
export const DEFAULT_PORT = 7420

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/** Whether only this machine can reach this address. */
export function isLoopback(host: string): boolean {
  const family = isIP(host)
  if (family === 0) return host.toLowerCase() === 'localhost'
  return LOOPBACK.check(host, family === 6 ? 'ipv6' : 'ipv4')
}
