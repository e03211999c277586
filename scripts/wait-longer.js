import { vi } from 'vitest'

/** The timeout of `expect.poll` in vitest.config.ts. `vi.waitFor` has no setting of its own. */
const WAIT_MS = 30_000

const { waitFor } = vi
vi.waitFor = (callback, options = WAIT_MS) => waitFor(callback, options)
