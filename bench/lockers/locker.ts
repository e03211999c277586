/** A lock library on its engine, as a user has it: all that is measured use it in this one way. */
export interface Locker {
  /** Waits until the key is held. */
  lock(key: string): Promise<Held>
  /** The same, kept alive by the library until it is released; where it has nothing better, `lock`. */
  keep(key: string): Promise<Held>
  close(): Promise<void>
}

export interface Held {
  release(): Promise<unknown>
  /** Whether the library calls it held, when it is asked now. */
  believes(): boolean
}

export interface LockerOptions {
  /** Where the engine is: a port of the loopback address. */
  readonly port: number
  /** In milliseconds; those who count in seconds round it up. */
  readonly ttl: number
}

export type OpenLocker = (options: LockerOptions) => Promise<Locker>

/** For a library that keeps alive whatever it has locked, or that cannot. */
export function locker(lock: Locker['lock'], close: Locker['close']): Locker {
  return { lock, keep: lock, close }
}
