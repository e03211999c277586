import { createHmac } from 'node:crypto'
import { type Clock, invalid, show, withoutPassword } from '../../../port/index.ts'

const VERSION = '2021-12-02'

export interface Request {
  readonly method?: 'GET' | 'HEAD' | 'PUT' | 'DELETE'
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  /** Statuses that are returned instead of thrown. */
  readonly accept?: readonly number[]
}

export interface ContainerOptions {
  readonly clock: Clock
  /** A request that takes longer is aborted, in milliseconds. */
  readonly timeout: number
}

/**
 * The blobs of one container, by plain HTTP requests. A shared access signature is part of the
 * address; a key of the account signs each request. Operators have both, and neither needs a package.
 */
export class Container {
  readonly #url: URL
  readonly #key: Buffer | undefined
  readonly #account: string
  readonly #options: ContainerOptions

  constructor(address: string, key: string | undefined, options: ContainerOptions) {
    if (!URL.canParse(address) || new URL(address).pathname.length < 2) {
      throw invalid(
        `address is ${show(withoutPassword(address))}: write https://account.blob.core.windows.net/container`,
      )
    }
    this.#url = new URL(address.replace(/^azure\+/, ''))
    const secret = key ?? (this.#url.password && decodeURIComponent(this.#url.password))
    this.#url.username = ''
    this.#url.password = ''
    this.#url.pathname = this.#url.pathname.replace(/\/$/, '')
    this.#key = secret ? Buffer.from(secret, 'base64') : undefined
    // Azurite has the account in the path, Azure in the host name.
    const [, first, second] = this.#url.pathname.split('/')
    this.#account = second === undefined ? this.#url.hostname.split('.')[0]! : first!
    this.#options = options
  }

  /** Whether requests are signed with the key of the account, which allows everything. */
  get hasKey(): boolean {
    return this.#key !== undefined
  }

  /** Sends a request for a blob, or for the container if the name is empty. */
  async ask(name: string, { accept = [], ...request }: Request): Promise<Response> {
    const { method = 'GET', query = {}, body } = request
    const url = new URL(this.#url)
    if (name !== '') url.pathname += `/${name}`
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value)
    const headers: Record<string, string> = {
      ...request.headers,
      'x-ms-date': new Date().toUTCString(),
      'x-ms-version': VERSION,
    }
    if (this.#key) {
      const length = body?.length ? `${body.length}` : ''
      headers['authorization'] = this.#sign(method, url, headers, length)
    }
    const sent = body === undefined ? (method === 'PUT' ? new Uint8Array() : null) : body
    const response = await this.#fetch(url, { method, headers, body: sent as Buffer | null })
    if (response.ok || accept.includes(response.status)) return response
    const code = response.headers.get('x-ms-error-code') ?? ''
    const details = code || (await response.text()).slice(0, 200)
    throw Object.assign(new Error(`${method} ${name}: ${response.status} ${details}`), {
      code: code || `${response.status}`,
    })
  }

  /** The names of blobs that begin with a prefix, in order. */
  async list(prefix: string): Promise<string[]> {
    const names: string[] = []
    for (let marker = ''; ; ) {
      const query = { restype: 'container', comp: 'list', prefix, ...(marker && { marker }) }
      const xml = await (await this.ask('', { query })).text()
      names.push(...[...xml.matchAll(/<Name>([^<]*)<\/Name>/g)].map((found) => found[1]!))
      marker = /<NextMarker>([^<]+)<\/NextMarker>/.exec(xml)?.[1] ?? ''
      if (marker === '') return names
    }
  }

  /** Access to the blobs whose names begin with `folder`, by the rest of their names. */
  folder(folder: string) {
    const put = { method: 'PUT', headers: { 'x-ms-blob-type': 'BlockBlob' } } as const
    return {
      names: async () => (await this.list(folder)).map((name) => name.slice(folder.length)),
      put: (name: string, body: Uint8Array) => this.ask(`${folder}${name}`, { ...put, body }),
      get: async (name: string) => {
        const response = await this.ask(`${folder}${name}`, { accept: [404] })
        const bytes = new Uint8Array(await response.arrayBuffer())
        return response.ok ? bytes : undefined
      },
      remove: (name: string) => this.ask(`${folder}${name}`, { method: 'DELETE', accept: [404] }),
    }
  }

  /** Aborts the request after the timeout. */
  async #fetch(url: URL, request: RequestInit): Promise<Response> {
    const { clock, timeout } = this.#options
    const controller = new AbortController()
    const timer = clock.timer(clock.now() + timeout, () => controller.abort())
    try {
      return await fetch(url, { ...request, signal: controller.signal })
    } finally {
      timer.cancel()
    }
  }

  /** Azure's Shared Key signature: a digest of the method, some headers, and the address. */
  #sign(method: string, url: URL, headers: Record<string, string>, length: string): string {
    const signed = Object.entries(headers)
      .filter(([name]) => name.startsWith('x-ms-'))
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, value]) => `${name}:${value}\n`)
    const query = [...url.searchParams].sort(([one], [other]) => (one < other ? -1 : 1))
    const resource = [`/${this.#account}${url.pathname}`, ...query.map((pair) => pair.join(':'))]
    const { 'if-none-match': unless = '', range = '' } = headers
    const fixed = [method, '', '', length, '', '', '', '', '', unless, '', range]
    const content = `${fixed.join('\n')}\n${signed.join('')}${resource.join('\n')}`
    const digest = createHmac('sha256', this.#key!).update(content).digest('base64')
    return `SharedKey ${this.#account}:${digest}`
  }
}
