import type { FollowEnd, Following, Log, LogEntry, Position } from '../../log/index.ts'

/** A follower that records its calls, and waits for more. */
export class Recorder {
  readonly entries: LogEntry[] = []
  readonly #timeout: number
  readonly #following: Following
  #end: FollowEnd | undefined
  #changed: () => void = () => {}

  constructor(log: Log, after: Position, timeout: number) {
    this.#timeout = timeout
    let hasReturned = false
    this.#following = log.follow(after, {
      entries: (entries) => {
        if (!hasReturned) throw new Error('the follower was called before follow() had returned')
        if (entries.length === 0) throw new Error('the follower was called with no entry')
        this.entries.push(
          ...entries.map(({ position, bytes }) => ({ position, bytes: new Uint8Array(bytes) })),
        )
        this.#changed()
      },
      ended: (end) => {
        this.#end = end
        this.#changed()
      },
    })
    hasReturned = true
  }

  close(): void {
    this.#following.close()
  }

  /** The bytes of the entries, as strings of one character a byte. */
  get texts(): string[] {
    return this.entries.map(({ bytes }) => textOf(bytes))
  }

  /** Waits until there are at least `count` entries. */
  async until(count: number): Promise<void> {
    await this.#until(() => this.entries.length >= count, `${count} entries`)
  }

  async untilEnded(): Promise<FollowEnd> {
    await this.#until(() => this.#end !== undefined, 'the end of the following')
    return this.#end!
  }

  async #until(isSo: () => boolean, what: string): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        const end = this.#end === undefined ? '' : `; it ended: ${this.#end.cause}`
        reject(
          new Error(`no ${what} within ${this.#timeout} ms: ${this.entries.length} came${end}`),
        )
      }, this.#timeout)
    })
    try {
      while (!isSo()) {
        const change = new Promise<void>((resolve) => {
          this.#changed = resolve
        })
        await Promise.race([change, late])
      }
    } finally {
      clearTimeout(timer)
      late.catch(() => {})
    }
  }
}

export function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0))
}

export function textOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')
}
