import type { LeaseStore } from '../../src/port/index.ts'
import type { Driver, Rules } from '../../src/testing/index.ts'

/** A notice or an answer that takes longer than this will never arrive. */
const TIMEOUT_MS = 8000

/** Drives several stores on one engine, in real time: calls are carried out in any order. */
export class EngineDriver implements Driver {
  readonly stores: readonly LeaseStore[]
  readonly prefix: string
  readonly rules: Rules = { inOrder: 'none', times: 'none', overtakenMayBeMissed: true }

  constructor(stores: readonly LeaseStore[], prefix: string) {
    this.stores = stores
    this.prefix = prefix
  }

  /** Nothing depends on it, but the kernel's time is positive. */
  now(): number {
    return 1
  }

  async until(done: () => boolean): Promise<void> {
    const end = performance.now() + TIMEOUT_MS
    while (!done()) {
      if (performance.now() > end) throw new Error(`no answer or notice after ${TIMEOUT_MS} ms`)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }

  async close(): Promise<void> {
    for (const store of this.stores) await store.close()
  }
}

/** Ends what an earlier run may have left behind. */
export async function endAll(store: LeaseStore): Promise<void> {
  const { leases } = await store.read({ leases: true })
  for (const { id } of leases) await store.revoke({ target: { lease: id } }).catch(() => {})
}
