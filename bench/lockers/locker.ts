/** A lock library on its engine, as a user uses it. All measurements use this interface. */
export interface Locker {
  /** Waits until the key is held. */
  lock(key: string): Promise<Held>
  /** Like `lock`, and the library keeps the lock alive until it is released, if it can. */
  keep(key: string): Promise<Held>
  close(): Promise<void>
}

export interface Held {
  release(): Promise<unknown>
  /** Whether the library reports the lock as held now. */
  believes(): boolean
}

export interface LockerOptions {
  /** The engine's port on the loopback address. */
  readonly port: number
  /** In milliseconds. Libraries that count in seconds round it up. */
  readonly ttl: number
}

export type OpenLocker = (options: LockerOptions) => Promise<Locker>

/** For a library that always keeps its locks alive, or never. */
export function locker(lock: Locker['lock'], close: Locker['close']): Locker {
  return { lock, keep: lock, close }
}
