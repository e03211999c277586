import type { LogEntry, Position } from '../../log/index.ts'
import type { Container } from './client/index.ts'
import type { Settings } from './options.ts'

/** A position is the number of the blob times this, plus the end of the entry within the blob. */
const SPAN = 2 ** 32
/** After so many bytes the next blob is used. */
const BLOB_BYTES = 2 ** 30
/** The bytes before each entry: its length. */
const FRAME = 4
/** The most bytes of one read, which is more than the largest entry. */
const READ_BYTES = 8 << 20

/**
 * The append blobs of a log: `<prefix>/log/<number>`. Each entry is one block. Azure orders the blocks
 * and returns the offset of each. A blob is sealed before the next one is created, so that no process
 * can append to it any more and positions only increase.
 */
export class Blobs {
  readonly #container: Container
  readonly #folder: string
  readonly #blocks: number
  #number = 1

  constructor(container: Container, { prefix, blocks }: Settings) {
    this.#container = container
    this.#folder = `${prefix}/log/`
    this.#blocks = blocks
  }

  /** Finds the newest blob, and creates the first if there is none. Returns the number of the oldest. */
  async open(): Promise<number> {
    const numbers = await this.#numbers()
    this.#number = numbers.at(-1) ?? 1
    await this.#create(this.#number)
    return numbers[0] ?? 1
  }

  /** Returns the position of the entry, and the position of the one before it. */
  async append(entry: Uint8Array): Promise<{ position: Position; start: Position }> {
    const body = new Uint8Array(FRAME + entry.length)
    new DataView(body.buffer).setUint32(0, entry.length)
    body.set(entry, FRAME)
    for (;;) {
      const number = this.#number
      const query = { comp: 'appendblock' }
      const request = { method: 'PUT', query, body, accept: [409] } as const
      const { ok, headers } = await this.#container.ask(this.#name(number), request)
      if (!ok) {
        const code = headers.get('x-ms-error-code')
        const isFull = code === 'BlobIsSealed' || code === 'BlockCountExceedsLimit'
        if (!isFull) throw Object.assign(new Error(`append: ${code}`), { code })
        await this.#next(number)
        continue
      }
      const start = number * SPAN + Number(headers.get('x-ms-blob-append-offset'))
      const count = Number(headers.get('x-ms-blob-committed-block-count'))
      if (count >= this.#blocks || start % SPAN >= BLOB_BYTES) await this.#next(number)
      return { position: start + body.length, start }
    }
  }

  /** The position of the last entry; 0 if the log never had one. */
  async tail(): Promise<Position> {
    while ((await this.#state(this.#number))?.isSealed !== false) await this.#next(this.#number)
    for (let number = this.#number; ; number--) {
      const state = await this.#state(number)
      if (state === undefined) return 0
      if (state.length > 0) return number * SPAN + state.length
    }
  }

  /** The next entries after a position. `missing`: the blob was deleted; `short`: it ends before. */
  async read(after: Position): Promise<readonly LogEntry[] | 'missing' | 'short'> {
    let [number, offset] = after === 0 ? [1, 0] : [Math.floor(after / SPAN), after % SPAN]
    for (;;) {
      const state = await this.#state(number)
      if (state === undefined) return offset === 0 && number > 1 ? [] : 'missing'
      if (state.length < offset) return 'short'
      if (state.length > offset) return this.#entries(number, offset)
      if (!state.isSealed) return []
      number++
      offset = 0
    }
  }

  /** Deletes whole blobs only. */
  async trim(through: Position): Promise<void> {
    const kept = Math.min(Math.floor(through / SPAN), this.#number)
    for (const number of await this.#numbers()) {
      if (number >= kept) return
      await this.#container.ask(this.#name(number), { method: 'DELETE', accept: [404] })
    }
  }

  async #entries(number: number, offset: number): Promise<LogEntry[]> {
    const headers = { range: `bytes=${offset}-${offset + READ_BYTES - 1}` }
    const response = await this.#container.ask(this.#name(number), { headers })
    const bytes = Buffer.from(await response.arrayBuffer())
    const entries: LogEntry[] = []
    for (let at = 0; at + FRAME <= bytes.length; ) {
      const end = at + FRAME + bytes.readUInt32BE(at)
      if (end > bytes.length) break
      entries.push({
        position: number * SPAN + offset + end,
        bytes: bytes.subarray(at + FRAME, end),
      })
      at = end
    }
    return entries
  }

  /** Seals a blob and creates the next. */
  async #next(number: number): Promise<void> {
    const accept = [404, 409]
    await this.#container.ask(this.#name(number), {
      method: 'PUT',
      query: { comp: 'seal' },
      accept,
    })
    await this.#create(number + 1)
    this.#number = Math.max(this.#number, number + 1)
  }

  async #create(number: number): Promise<void> {
    const headers = { 'x-ms-blob-type': 'AppendBlob', 'if-none-match': '*' }
    await this.#container.ask(this.#name(number), { method: 'PUT', headers, accept: [409, 412] })
  }

  async #state(number: number): Promise<{ length: number; isSealed: boolean } | undefined> {
    const request = { method: 'HEAD', accept: [404] } as const
    const { ok, headers } = await this.#container.ask(this.#name(number), request)
    if (!ok) return undefined
    const isSealed = headers.get('x-ms-blob-sealed') === 'true'
    return { length: Number(headers.get('content-length')), isSealed }
  }

  async #numbers(): Promise<number[]> {
    const names = await this.#container.list(this.#folder)
    return names.map((name) => Number(name.slice(this.#folder.length)))
  }

  #name(number: number): string {
    return `${this.#folder}${String(number).padStart(7, '0')}`
  }
}
