import { invalid, show, withoutPassword } from '../../port/index.ts'

/** The parts of an engine's address. */
export interface Address {
  readonly scheme: string
  readonly hosts: readonly string[]
  readonly user: string | undefined
  readonly password: string | undefined
  readonly path: string
}

const FORM = /^([a-z]+):\/\/(?:([^:@]*)(?::(.*))?@)?([^/?@]+)(?:\/([^?]*))?$/

/** Parses `scheme://user:password@host:port,host:port/path`; `URL` allows one host only. */
export function addressOf(url: string): Address {
  const [, scheme, user, password, hosts, path] = FORM.exec(url) ?? []
  if (scheme === undefined || hosts === undefined) {
    const form = 'scheme://user:password@host:port,host:port/path'
    throw invalid(`store ${show(withoutPassword(url))} is not an address: write ${form}`)
  }
  return {
    scheme,
    hosts: hosts.split(','),
    user: user ? decodeURIComponent(user) : undefined,
    password: password ? decodeURIComponent(password) : undefined,
    path: decodeURIComponent(path ?? ''),
  }
}
