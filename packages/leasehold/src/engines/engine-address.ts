import { invalid, show, withoutPassword } from '../port/index.ts'

export const ENGINE_ADDRESSES = [
  'redis://host:6379',
  'redis+sentinel://host:26379,host:26379/master',
  'postgres://user@host/database',
  'etcd://host:2379,host:2379',
  'consul://host:8500,host:8500',
  'zookeeper://host:2181,host:2181',
  'nats://host:4222,host:4222',
  'azure+https://account:key@account.blob.core.windows.net/container',
]

/** `scheme://user:password@host:port,host:port/path?setting=value`; `URL` allows only one host. */
export class EngineAddress {
  readonly scheme: string
  readonly hosts: readonly string[]
  readonly user: string | undefined
  readonly password: string | undefined
  readonly path: string
  readonly #url: string
  readonly #settings: URLSearchParams

  constructor(url: string) {
    const parts = /^([a-z+]+):\/\/(?:([^@/]*)@)?([^/?]+)(?:\/([^?]*))?(?:\?(.*))?$/.exec(url)
    if (!parts)
      throw invalid(`store is ${show(withoutPassword(url))}, without a host: use ${examples()}`)
    const [, scheme, login, hosts, path, settings] = parts
    // A password may contain colons.
    const [, user, password] = /^([^:]*):?(.*)$/.exec(login ?? '')!
    this.#url = url
    this.scheme = scheme!
    this.hosts = hosts!.split(',')
    this.user = user ? decoded('user', user) : undefined
    this.password = password ? decoded('password', password) : undefined
    this.path = decoded('path', path ?? '')
    this.#settings = new URLSearchParams(settings)
  }

  /** Removes one of our settings from the address; the rest belongs to the client. */
  take(name: string): string | undefined {
    const value = this.#settings.get(name) ?? undefined
    this.#settings.delete(name)
    return value
  }

  /** The address as given, without the settings that were taken. */
  get rest(): string {
    const [base] = this.#url.split('?')
    const settings = this.#settings.toString()
    return settings === '' ? base! : `${base}?${settings}`
  }

  /** Refuses settings that were not taken. */
  finish(...known: string[]): void {
    const [unknown] = this.#settings.keys()
    if (unknown === undefined) return
    throw invalid(
      `the store address has an unknown setting ${show(unknown)}; known settings: ${known.join(', ') || 'none'}`,
    )
  }
}

/** The message does not show the part, which may be a secret. */
function decoded(what: string, part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw invalid(`the ${what} in the store address has a % that is no escape: write %25 instead`)
  }
}

function examples(): string {
  return ENGINE_ADDRESSES.map((address) => `'${address}'`).join(', ')
}
