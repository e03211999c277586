import { createSecureContext } from 'node:tls'
import { invalid, show } from 'leasehold/port'
import type { ServerTls } from '../server.ts'
import type { Config } from './load-config.ts'
import { readWhole } from './whole-file.ts'

/** Reads the files, and tries them, so that a wrong one is found now and not by the first client. */
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
      `${given} is ${show(values[given])} (from ${origins[given]}), but ${missing} is not given: TLS needs --tls-cert and --tls-key`,
    )
  }
  const read = (name: 'tlsCert' | 'tlsKey' | 'tlsCa', file: string): Buffer => {
    try {
      const { content, isOpenToOthers } = readWhole(file)
      if (name === 'tlsKey' && isOpenToOthers) {
        warn(`tlsKey ${show(file)} can be read by every user of this machine: chmod 600 it`)
      }
      return content
    } catch (error) {
      throw invalid(
        `${name} is ${show(file)} (from ${origins[name]}), which cannot be read (${(error as Error).message}): name a PEM file that this process may read`,
      )
    }
  }
  const tried = <Part extends object>(name: 'tlsCert' | 'tlsKey' | 'tlsCa', part: Part): Part => {
    try {
      createSecureContext(part)
      return part
    } catch (error) {
      throw invalid(
        `${name} is ${show(values[name])} (from ${origins[name]}), which cannot be used (${(error as Error).message}): it must hold PEM, and the key must be that of the certificate`,
      )
    }
  }
  const { cert } = tried('tlsCert', { cert: read('tlsCert', tlsCert) })
  const pair = tried('tlsKey', { cert, key: read('tlsKey', tlsKey) })
  if (tlsCa === undefined) return pair
  const ca = read('tlsCa', tlsCa)
  // A file without a certificate is taken for "no authority", and would let nobody in.
  if (!ca.includes('-----BEGIN CERTIFICATE-----')) {
    throw invalid(
      `tlsCa is ${show(tlsCa)} (from ${origins.tlsCa}), which holds no certificate: it must hold those of the authorities, in PEM`,
    )
  }
  return { ...pair, ...tried('tlsCa', { ca }) }
}
