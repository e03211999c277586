import type { Clock } from '../../../port/index.ts'

export interface AgentsOptions {
  /** Such as `http://127.0.0.1:8500`. One is used until it fails, then the next. */
  readonly endpoints: readonly string[]
  /** The ACL token. */
  readonly token: string | undefined
  readonly clock: Clock
  /** A request to one agent that takes longer is aborted, in milliseconds. */
  readonly timeout: number
}

export interface Pair {
  readonly index: number
  readonly value: Buffer
}

/** An operation of a transaction, in Consul's words. */
export interface Operation {
  readonly Verb: 'cas' | 'set' | 'get'
  readonly Key: string
  readonly Value?: string
  readonly Index?: number
}

interface Row {
  readonly Key: string
  readonly Value: string | null
  readonly ModifyIndex: number
}

/**
 * The key-value store of Consul, by plain HTTP requests to its agents. Every read is `consistent`: the
 * leader first makes sure that it still is the leader.
 */
export class Agents {
  readonly #options: AgentsOptions
  readonly #closing = new AbortController()
  #current = 0

  constructor(options: AgentsOptions) {
    this.#options = options
  }

  /**
   * The value of a key, or `undefined`, and the index for the next call. With `since`, the answer
   * comes when the index is another one, or after `waitMs`.
   */
  async read(
    key: string,
    since?: { readonly index: number; readonly waitMs: number },
  ): Promise<{ readonly pair: Pair | undefined; readonly index: number }> {
    const blocking = since ? `&index=${since.index}&wait=${since.waitMs}ms` : ''
    // Consul adds up to a sixteenth to the wait.
    const extra = since ? since.waitMs * (17 / 16) : 0
    const response = await this.#get(`kv/${key}?consistent${blocking}`, extra)
    const index = Number(response.headers.get('x-consul-index'))
    if (response.status === 404) return { pair: undefined, index }
    const [row] = (await response.json()) as [Row]
    return { pair: pairOf(row), index }
  }

  async keys(prefix: string): Promise<readonly string[]> {
    const response = await this.#get(`kv/${prefix}?consistent&keys`)
    return response.status === 404 ? [] : ((await response.json()) as string[])
  }

  async put(key: string, body: Uint8Array): Promise<void> {
    await this.#ask('PUT', `kv/${key}`, [], { body })
  }

  /** Deletes a key, or all keys with a prefix. */
  async delete(key: string, query: '' | '?recurse' = ''): Promise<void> {
    await this.#ask('DELETE', `kv/${key}${query}`, [])
  }

  /** All operations in one step, or `undefined` if a condition failed or a key does not exist. */
  async transact(operations: readonly Operation[]): Promise<readonly Pair[] | undefined> {
    const body = Buffer.from(JSON.stringify(operations.map((KV) => ({ KV }))))
    const response = await this.#ask('PUT', 'txn?consistent', [409], { body })
    if (response.status === 409) return undefined
    const { Results } = (await response.json()) as { Results: readonly { KV: Row }[] | null }
    return (Results ?? []).map(({ KV }) => pairOf(KV))
  }

  /** Aborts all requests. */
  close(): void {
    this.#closing.abort()
  }

  /** A read may be repeated, so the next agent is asked if one does not answer. */
  async #get(path: string, extra = 0): Promise<Response> {
    for (let left = this.#options.endpoints.length - 1; ; left--) {
      try {
        return await this.#ask('GET', path, [404], { extra })
      } catch (error) {
        // A time limit of `fetch` fails with a number as its code.
        const isAnswer = String((error as { code?: unknown }).code).startsWith('HTTP 4')
        if (left === 0 || isAnswer || this.#closing.signal.aborted) throw error
      }
    }
  }

  async #ask(
    method: string,
    path: string,
    accept: readonly number[],
    { body, extra = 0 }: { readonly body?: Uint8Array; readonly extra?: number } = {},
  ): Promise<Response> {
    const { endpoints, token, clock, timeout } = this.#options
    const at = this.#current
    const late = new AbortController()
    const timer = clock.timer(clock.now() + timeout + extra, () => late.abort())
    try {
      const response = await fetch(`${endpoints[at]}/v1/${path}`, {
        method,
        headers: token === undefined ? {} : { 'x-consul-token': token },
        ...(body && { body: body as Buffer }),
        signal: AbortSignal.any([late.signal, this.#closing.signal]),
      })
      // The body is read here, because it may not come either.
      const text = await response.arrayBuffer()
      if (!response.ok && !accept.includes(response.status)) {
        const words = Buffer.from(text).toString().slice(0, 200)
        throw Object.assign(new Error(`${method} ${path.split('?')[0]}: ${words}`), {
          code: `HTTP ${response.status}`,
        })
      }
      const { status, headers } = response
      return new Response(text, { status, headers })
    } catch (error) {
      if (this.#current === at) this.#current = (at + 1) % endpoints.length
      throw error
    } finally {
      timer.cancel()
    }
  }
}

function pairOf({ Value, ModifyIndex }: Row): Pair {
  return { index: ModifyIndex, value: Buffer.from(Value ?? '', 'base64') }
}
