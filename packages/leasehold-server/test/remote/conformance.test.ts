import fc from 'fast-check'
import { memoryStore } from 'leasehold/memory'
import type { Limits } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import {
  type Command,
  commandSequences,
  compareWithKernel,
  conformance,
  type Opened,
} from 'leasehold/testing'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { createServer, type LeaseServer } from '../../src/index.ts'
import { Place, type ServerProcess } from '../setup/server-process.ts'

const place = new Place()
afterAll(() => place.clean())

/** Several processes share a machine that may be busy with something else. */
async function open(server: ServerProcess): Promise<Opened> {
  return { store: await remoteStore(server.url), ttl: 2500 }
}

describe('the remote store, on a server process with a file store', { concurrent: true }, () => {
  let server: ServerProcess
  beforeAll(async () => {
    server = await place.server()
  })
  const cases = conformance({ open: () => open(server), shared: true })
  for (const { name, skip, run } of cases) it.skipIf(skip)(name, run)
})

describe('the remote store, on a server process with a memory store', { concurrent: true }, () => {
  let server: ServerProcess
  beforeAll(async () => {
    server = await place.server('memory:')
  })
  const cases = conformance({ open: () => open(server), shared: true })
  for (const { name, skip, run } of cases) it.skipIf(skip)(name, run)
})

/** Small enough that every limit can be reached. */
const SMALL: Partial<Limits> = {
  keysPerClaim: 40,
  claimsPerLease: 30,
  claimsPerKey: 40,
  childrenPerLease: 12,
  leaseDepth: 4,
  events: 64,
  historyPerKey: 4,
}

async function openSmall(): Promise<Opened> {
  const inner = memoryStore({ limits: SMALL })
  const server: LeaseServer = await createServer({ store: inner, limits: SMALL, port: 0 })
  const store = await remoteStore(server.url)
  const close = async () => {
    await server.close()
    await inner.close()
  }
  return { store, close }
}

describe('the remote store, on its own server with small limits', { concurrent: true }, () => {
  // The tests above cover timing, because nothing else runs in their server process.
  const untimed = conformance({ open: openSmall, limits: SMALL }).filter(
    ({ name }) => !/^(leases|families|revoking|waiting)/.test(name),
  )
  for (const { name, skip, run } of untimed) it.skipIf(skip)(name, run)
})

describe('the remote store, given random commands', () => {
  let server: ServerProcess
  beforeAll(async () => {
    server = await place.server('memory:')
  })

  it('agrees with the kernel', async () => {
    const sequences: fc.Arbitrary<Command[]> = commandSequences(fc)
    await fc.assert(
      fc.asyncProperty(sequences, (commands) => compareWithKernel(() => open(server), commands)),
      { numRuns: 20 },
    )
  }, 240_000)
})
