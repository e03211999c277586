import { expect } from 'vitest'
import { isLeaseholdError } from '../../../../src/port/index.ts'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { contents, rest, SMALL, StillClock } from '../harness.ts'
import { MemoryDisk } from '../memory-disk.ts'

const KEYS = ['a', 'b', 'c', 'd']

function open(disk: MemoryDisk, clock = new StillClock()) {
  const options = { disk, clock, limits: SMALL, segmentBytes: 4096, snapshotBytes: 14_000 }
  return fileStore('memory', options)
}

export interface Made {
  readonly disk: MemoryDisk
  readonly contents: Awaited<ReturnType<typeof contents>>
}

/** A store with a snapshot, several segments after it, claims that wait, and a history. */
export async function make(): Promise<Made> {
  const disk = new MemoryDisk()
  const store = await open(disk)
  for (let round = 0; round < 90; round++) {
    const key = KEYS[round % KEYS.length]!
    const spec = { holder: `h${round}`, ttl: 60_000, labels: { round: `${round}` } }
    const value = round % 7 ? 'v'.repeat(round) : '\0'.repeat(1100)
    const granted = await store.grant({ ...spec, claims: [{ key, value }], request: `r${round}` })
    if (granted.outcome !== 'granted') throw new Error('unexpected')
    if (round % 3) await store.revoke({ target: { lease: granted.lease }, why: 'done' })
    await rest(round === 40 ? 40 : 1)
  }
  const after = await contents(store, KEYS)
  await store.close()
  return { disk, contents: after }
}

/** Opens damaged files: the result must be all durable data, or a clear refusal. */
export async function judge(disk: MemoryDisk, made: Made): Promise<'intact' | 'refused'> {
  let store: Awaited<ReturnType<typeof open>>
  try {
    store = await open(disk)
  } catch (error) {
    if (!isLeaseholdError(error, 'storage-damaged')) throw error
    expect(error.message).toMatch(
      /^((log|snapshot)-\d+|manifest) (is damaged at byte \d+|is missing|cannot be)/,
    )
    expect(error.message).toContain('Restore the whole folder')
    return 'refused'
  }
  expect(await contents(store, KEYS)).toEqual(made.contents)
  await store.close()
  return 'intact'
}

export async function expectCutOffRefused(made: Made, name: string, length: number): Promise<void> {
  const disk = made.disk.copy()
  disk.files.set(name, disk.files.get(name)!.subarray(0, length))
  expect(await judge(disk, made), `${name} cut to ${length}`).toBe('refused')
}
