import { beforeAll, describe, expect, it } from 'vitest'
import { isLeaseholdError, type LeaseStore } from '../../../../src/port/index.ts'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { contentsAfterCrash, rest, SMALL, StillClock } from '../harness.ts'
import { diskError, MemoryDisk } from '../memory-disk.ts'

const KEYS = ['a', 'b', 'c', 'd']
const SECTOR = 512
const SEGMENT = 4096

function open(disk: MemoryDisk, clock = new StillClock()) {
  const options = { disk, clock, limits: SMALL, segmentBytes: SEGMENT, snapshotBytes: 14_000 }
  return fileStore('memory', options)
}

type Files = MemoryDisk

interface Made {
  readonly files: Files
  /** The same folder some changes earlier. */
  readonly older: Files
  readonly contents: Awaited<ReturnType<typeof contentsAfterCrash>>
  /** The highest token that was answered. */
  readonly highest: number
}

async function work(store: LeaseStore, rounds: number): Promise<number> {
  let highest = 0
  for (let round = 0; round < rounds; round++) {
    const claims = [{ key: KEYS[round % KEYS.length]!, value: 'v'.repeat(20 * (round % 9)) }]
    const granted = await store.grant({ holder: `h${round}`, ttl: 60_000, claims })
    if (granted.outcome !== 'granted') throw new Error('unexpected')
    highest = granted.token
    if (round % 3) await store.revoke({ target: { lease: granted.lease }, why: 'done' })
    await rest(2)
  }
  return highest
}

/** A folder with a snapshot and several segments, closed or left by a crash. */
async function make(end: 'closed' | 'crashed'): Promise<Made> {
  const disk = new MemoryDisk()
  const clock = new StillClock()
  const store = await open(disk, clock)
  await work(store, 80)
  await rest(40)
  if (end === 'crashed') clock.advance(1000)
  await rest()
  const older = disk.copy()
  if (end === 'closed') {
    // The result if it had been closed then.
    await (await open(older)).close()
  }
  const highest = await work(store, 10)
  const contents = await contentsAfterCrash(store, KEYS)
  clock.advance(1000)
  await rest()
  if (end === 'closed') await store.close()
  const files = disk.copy()
  const names = [...files.files.keys()]
  expect(names.some((name) => name.startsWith('snapshot'))).toBe(true)
  expect(names.filter((name) => name.startsWith('log')).length).toBeGreaterThan(2)
  return { files, older, contents, highest }
}

/** A possible loss in one file. Returns false if it does not apply. */
type Harm = (files: Files, name: string, made: Made) => boolean

const HARMS: Record<string, Harm> = {
  deleted: ({ files }, name) => files.delete(name),
  'cut in half': ({ files }, name) => {
    const bytes = files.get(name)!
    files.set(name, bytes.subarray(0, bytes.length / 2))
    return true
  },
  emptied: ({ files }, name) => {
    files.set(name, Buffer.alloc(0))
    return true
  },
  'all zeros': ({ files }, name) => {
    files.get(name)!.fill(0)
    return true
  },
  'zeros at its end': ({ files }, name) => {
    const bytes = files.get(name)!
    const used = usedOf(bytes)
    bytes.fill(0, Math.max(0, Math.floor((used - 1) / SECTOR) * SECTOR))
    return true
  },
  'zeros after its header': ({ files }, name) => {
    files.get(name)!.fill(0, 128)
    return true
  },
  'there twice': ({ files }, name) => {
    const [, kind, number] = /^(\w+-)(\d+)$/.exec(name) ?? []
    if (kind === undefined) return false
    const next = `${kind}${String(Number(number) + 1).padStart(8, '0')}`
    files.set(next, Buffer.from(files.get(name)!))
    return true
  },
  older: ({ files }, name, { older }) => {
    const bytes = older.files.get(name)
    if (bytes === undefined || bytes.equals(files.get(name)!)) return false
    files.set(name, Buffer.from(bytes))
    return true
  },
}

function usedOf(bytes: Buffer): number {
  let used = bytes.length
  while (used > 0 && bytes[used - 1] === 0) used--
  return used
}

/** Opens the rest. In any case, no token may be given again. */
async function judge(files: Files, made: Made): Promise<'intact' | 'refused' | 'lost'> {
  let store: LeaseStore
  try {
    store = await open(files)
  } catch (error) {
    if (!isLeaseholdError(error, 'storage-damaged')) throw error
    expect(error.message).toContain('Restore the whole folder')
    return 'refused'
  }
  const contents = await contentsAfterCrash(store, KEYS)
  const granted = await store.grant({ holder: 'next', ttl: 60_000, claims: [{ key: 'a' }] })
  expect(granted.revision).toBeGreaterThan(made.highest)
  await store.close()
  return JSON.stringify(contents) === JSON.stringify(made.contents) ? 'intact' : 'lost'
}

describe.each(['closed', 'crashed'] as const)('a folder that was %s', (end) => {
  let made: Made

  beforeAll(async () => {
    made = await make(end)
    expect(await judge(made.files.copy(), made)).toBe('intact')
  })

  const names = () => [...made.files.files.keys()].sort()

  it('is complete or refused, whatever happens to one file', async () => {
    const intact: string[] = []
    for (const name of names()) {
      for (const [what, harm] of Object.entries(HARMS)) {
        const files = made.files.copy()
        if (!harm(files, name, made)) continue
        const outcome = await judge(files, made)
        expect(outcome, `${name} ${what}`).not.toBe('lost')
        if (outcome === 'intact') intact.push(`${name} ${what}`)
      }
    }
    const ready = names().findLast((name) => name.startsWith('log'))
    const harmless = new RegExp(`^${ready} (deleted|zeros)`)
    const unexpected = intact.filter((each) => !harmless.test(each) && !/manifest older/.test(each))
    expect(unexpected).toEqual([])
  })

  it('is complete or refused, whatever happens to two files', async () => {
    const lost: string[] = []
    const all = names()
    for (const [index, first] of all.entries()) {
      for (const second of all.slice(index + 1)) {
        for (const [what, harm] of Object.entries(HARMS)) {
          for (const [then, other] of Object.entries(HARMS)) {
            const files = made.files.copy()
            if (!harm(files, first, made) || !files.files.has(second)) continue
            if (!other(files, second, made)) continue
            const outcome = await judge(files, made)
            if (outcome === 'lost') lost.push(`${first} ${what}, ${second} ${then}`)
          }
        }
      }
    }
    // An older manifest does not know later changes. Tokens still rise.
    expect(lost.filter((each) => !each.includes('manifest older'))).toEqual([])
  }, 240_000)

  it('is refused when the log reads as zeros from any sector on', async () => {
    const last = names()
      .filter((name) => name.startsWith('log'))
      .findLast((name) => usedOf(made.files.files.get(name)!) > 128)!
    const used = usedOf(made.files.files.get(last)!)
    expect(used).toBeGreaterThan(SECTOR)
    for (let from = 0; from < used; from += SECTOR) {
      const files = made.files.copy()
      files.files.get(last)!.fill(0, from)
      expect(await judge(files, made), `zeros from ${from}`).toBe('refused')
    }
  })

  it('is refused without its log, and nothing is made in its place', async () => {
    const files = made.files.copy()
    for (const name of names()) if (name !== 'manifest') files.files.delete(name)
    await expect(open(files)).rejects.toThrow(/^snapshot-\d+ is missing/)
    expect([...files.files.keys()]).toEqual(['manifest'])
  })
})

describe('the end of a log that was written after the last checkpoint', () => {
  it('can be lost unnoticed in a crash, and yet no token is given twice', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    const first = await store.grant({ holder: 'first', ttl: 60_000, claims: [{ key: 'k' }] })
    const files = disk.copy()
    files.files.get('log-00000001')!.fill(0, 128)
    const again = await open(files)
    expect((await again.read({ key: 'k' })).claims).toEqual([])
    const next = await again.grant({ holder: 'next', ttl: 60_000, claims: [{ key: 'k' }] })
    expect(next.revision).toBeGreaterThan(first.revision)
    await again.close()
  })

  it('is covered as soon as the log continues in the next segment', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    for (let at = 0; at < 10; at++) {
      const claims = [{ key: `k${at}`, value: 'v'.repeat(500) }]
      await store.grant({ holder: 'h', ttl: 60_000, claims })
    }
    await rest()
    const files = disk.copy()
    expect(usedOf(files.files.get('log-00000002')!)).toBeGreaterThan(128)
    files.files.get('log-00000002')!.fill(0, 128)
    await expect(open(files)).rejects.toMatchObject({ code: 'storage-damaged' })
    await store.close()
  })

  it('is covered within a second, and when the store is closed', async () => {
    for (const cover of ['second', 'close']) {
      const disk = new MemoryDisk()
      const clock = new StillClock()
      const store = await open(disk, clock)
      await store.grant({ holder: 'first', ttl: 60_000 })
      if (cover === 'close') await store.close()
      else clock.advance(1000)
      await rest()
      const files = disk.copy()
      files.files.get('log-00000001')!.fill(0, 128)
      await expect(open(files), cover).rejects.toThrow(
        /the log ends with frame 0, but it was written up to frame 1/,
      )
    }
  })
})

describe('the manifest of a store that was new', () => {
  it('is refused with a log that was written to afterwards', async () => {
    const disk = new MemoryDisk()
    const { rename } = disk
    let manifest: Buffer | undefined
    disk.rename = async (from, to) => {
      await rename.call(disk, from, to)
      manifest ??= Buffer.from(disk.files.get('manifest')!)
    }
    const store = await open(disk)
    await store.grant({ holder: 'first', ttl: 60_000 })
    const files = disk.copy()
    files.files.set('manifest', manifest!)
    await expect(open(files)).rejects.toThrow('manifest is an older copy')
    await store.close()
  })
})

describe('the manifest of a store that was closed', () => {
  it('is refused with a log that was written to afterwards, even in part', async () => {
    const disk = new MemoryDisk()
    const store = await open(disk)
    await store.grant({ holder: 'first', ttl: 60_000 })
    await store.close()
    const manifest = Buffer.from(disk.files.get('manifest')!)
    const again = await open(disk)
    disk.fault.writing = (name, bytes, position, file) => {
      // The power fails when one sector has been written.
      if (name.startsWith('log'))
        file.set(bytes.subarray(0, SECTOR - (position % SECTOR)), position)
      throw diskError('EIO')
    }
    const claims = [{ key: 'k', value: 'v'.repeat(1000) }]
    await expect(again.grant({ holder: 'torn', ttl: 60_000, claims })).rejects.toThrow('EIO')
    const files = disk.copy()
    await (await open(files.copy())).close()
    files.files.set('manifest', manifest)
    await expect(open(files)).rejects.toThrow('manifest is an older copy')
  })
})

describe('files that were never finished', () => {
  it('are removed at the next opening', async () => {
    const disk = new MemoryDisk()
    await (await open(disk)).close()
    const unfinished = ['log-00000007.tmp', 'snapshot-00000007.tmp', 'manifest.tmp']
    for (const name of unfinished) disk.files.set(name, Buffer.alloc(10))
    await (await open(disk)).close()
    expect([...disk.files.keys()].filter((name) => name.endsWith('.tmp'))).toEqual([])
  })
})

describe('files that a snapshot replaced', () => {
  it('are removed at the next opening if a crash prevented it', async () => {
    const disk = new MemoryDisk()
    disk.remove = async () => {}
    const store = await open(disk)
    await work(store, 80)
    await rest(40)
    const contents = await contentsAfterCrash(store, KEYS)
    const files = disk.copy()
    expect([...files.files.keys()]).toContain('log-00000001')
    const again = await open(files)
    expect(await contentsAfterCrash(again, KEYS)).toEqual(contents)
    const names = [...files.files.keys()]
    expect(names).not.toContain('log-00000001')
    expect(names.filter((name) => name.startsWith('snapshot-'))).toHaveLength(1)
    await again.close()
  })
})
