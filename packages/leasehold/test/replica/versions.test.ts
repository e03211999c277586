import { describe, expect, it } from 'vitest'
import { MemoryLog } from '../../src/log/index.ts'
import { LeaseholdError } from '../../src/port/index.ts'
import { replicaStore } from '../../src/replica/index.ts'
import { TestClock } from '../../src/testing/index.ts'
import { openReplica } from './open-replicas.ts'

const clock = new TestClock()
const open = (shared: MemoryLog) =>
  replicaStore(shared.open(), { clock, limits: { history: 16 }, coalesce: 0 })

describe('a log that this version cannot read', () => {
  it('is refused if something else wrote it', async () => {
    const shared = new MemoryLog()
    await shared.open().append(new TextEncoder().encode('{"order":17}'))
    await expect(open(shared)).rejects.toMatchObject({ code: 'invalid-argument' })
    await expect(open(shared)).rejects.toThrow('7b226f72646572223a31377d')
  })

  it('is refused if a newer version wrote an entry', async () => {
    const shared = new MemoryLog()
    await shared.open().append(Uint8Array.of(0x4c, 0x48, 9, 1, 2, 3))
    await expect(open(shared)).rejects.toMatchObject({ code: 'unsupported' })
    await expect(open(shared)).rejects.toThrow('has format 9')
  })

  it('also stops a running replica', async () => {
    const shared = new MemoryLog()
    const store = await open(shared)
    await shared.open().append(Uint8Array.of(0x4c, 0x48, 9, 1, 2, 3))
    await clock.settle()
    await expect(store.read({ prefix: '' })).rejects.toMatchObject({ code: 'unsupported' })
    await store.close()
  })

  it('is refused if an entry is damaged, with its position', async () => {
    const shared = new MemoryLog()
    await (await open(shared)).close()
    const position = await shared.open().append(Uint8Array.of(0x4c, 0x48, 1, 200, 1))
    await expect(open(shared)).rejects.toMatchObject({ code: 'storage-damaged' })
    await expect(open(shared)).rejects.toThrow(`position ${position} `)
  })

  it('is still read if something else wrote an entry between ours', async () => {
    const shared = new MemoryLog()
    const store = await open(shared)
    await shared.open().append(new TextEncoder().encode('hello'))
    expect(await store.grant({ holder: 'h', ttl: 1000 })).toMatchObject({ outcome: 'granted' })
    const other = await open(shared)
    expect((await other.read({ leases: true })).leases).toHaveLength(1)
    await store.close()
    await other.close()
  })
})

describe('a process that knows other lease rules', () => {
  const openWith = (shared: MemoryLog, semantics: number) => openReplica(shared, clock, semantics)
  const closed = new LeaseholdError('closed', 'the test is over')

  it('is refused if it is too old, with what to do', async () => {
    const shared = new MemoryLog()
    const newer = await openWith(shared, 2)
    const opening = openWith(shared, 1)
    await expect(opening).rejects.toMatchObject({ code: 'unsupported' })
    await expect(opening).rejects.toThrow('version 2 of the lease rules')
    await newer.close(closed)
  })

  it('changes nothing until the last old process has left', async () => {
    const shared = new MemoryLog()
    const old = await openWith(shared, 1)
    const newer = await openWith(shared, 2)
    await clock.advance(25_000)
    expect(newer.machine.semantics).toBe(1)
    await old.close(closed)
    await clock.advance(25_000)
    expect(newer.machine.semantics).toBe(2)
    await newer.close(closed)
  })
})
