import { createSecureContext } from 'node:tls'
import { invalid, show } from 'leasehold/port'
import type { ServerTls } from '../server.ts'
import type { Config } from './load-config.ts'
import { readSmallFile } from './small-file.ts'

/** Reads and tests the files, so that a wrong one fails at the start and not with the first client. */
export function readTls(
  { values, origins }: Config,
  warn: (message: string) => void = () => {},
): ServerTls | undefined {
  const { tlsCert, tlsKey, tlsCa } = values
  const given = (['tlsCert', 'tlsKey', 'tlsCa'] as const).find((name) => values[name] !== undefined)
  if (given === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined) {
    const missing = tlsCert === undefined ? '--tls-cert' : '--tls-key'
    throw invalid(
      `${given} is ${show(values[given])} (from ${origins[given]}) but ${missing} is missing: TLS needs --tls-cert and --tls-key`,
    )
  }
  const read = (name: 'tlsCert' | 'tlsKey' | 'tlsCa', file: string): Buffer => {
    try {
      const { content, isOpenToOthers } = readSmallFile(file)
      if (name === 'tlsKey' && isOpenToOthers) {
        warn(`every user of this machine can read tlsKey ${show(file)}; run chmod 600 on it`)
      }
      return content
    } catch (error) {
      throw invalid(
        `${name} is ${show(file)} (from ${origins[name]}) and cannot be read: ${(error as Error).message}. Use a PEM file that this process can read`,
      )
    }
  }
  const tried = <Part extends object>(name: 'tlsCert' | 'tlsKey' | 'tlsCa', part: Part): Part => {
    try {
      createSecureContext(part)
      return part
    } catch (error) {
      throw invalid(
        `${name} is ${show(values[name])} (from ${origins[name]}) and cannot be used: ${(error as Error).message}. It must be PEM, and the key must match the certificate`,
      )
    }
  }
  const { cert } = tried('tlsCert', { cert: read('tlsCert', tlsCert) })
  const pair = tried('tlsKey', { cert, key: read('tlsKey', tlsKey) })
  if (tlsCa === undefined) return pair
  const ca = read('tlsCa', tlsCa)
  // Node treats a file without certificates as an empty CA list, which would refuse every client.
  if (!ca.includes('-----BEGIN CERTIFICATE-----')) {
    throw invalid(
      `tlsCa is ${show(tlsCa)} (from ${origins.tlsCa}) and contains no certificate: it must contain the CA certificates in PEM`,
    )
  }
  return { ...pair, ...tried('tlsCa', { ca }) }
}
