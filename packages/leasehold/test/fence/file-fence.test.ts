import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { formatRecord } from '../../src/fence/fence-record.ts'
import { type FileFence, type FileFenceOptions, fileFence } from '../../src/fence/index.ts'
import { systemRandom } from '../../src/port/index.ts'
import { childPrograms } from '../setup/child-programs.ts'
import { fallsIn, itIsAFence, type Try } from './fence-cases.ts'

const CHILD = fileURLToPath(new URL('./file-fence-child.ts', import.meta.url))
const FIRST = 'fence-00000001.log'
const SECOND = 'fence-00000002.log'

let folder: string
let opened: FileFence[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-fence-'))
  opened = []
})

afterEach(async () => {
  await Promise.all(opened.map((fence) => fence.close()))
  rmSync(folder, { recursive: true, force: true })
})

async function open(at = folder, options?: FileFenceOptions): Promise<FileFence> {
  const fence = await fileFence(at, options)
  opened.push(fence)
  return fence
}

const stale = (highest: number) => ({ code: 'stale-token', highest })

describe('a fence in a folder', () => {
  let fences: FileFence[]
  let turn = 0

  beforeEach(async () => {
    fences = [await open(), await open(), await open()]
  })

  // Like separate processes: they share only the folder.
  itIsAFence(() => fences[turn++ % fences.length]!)

  it('remembers across a restart', async () => {
    await fences[0]!.admit('a', 9)
    await fences[1]!.admit('a', 10)
    await Promise.all(fences.map((fence) => fence.close()))
    await expect(fences[0]!.admit('a', 11)).rejects.toMatchObject({ code: 'closed' })
    const again = await open()
    await expect(again.admit('a', 9)).rejects.toMatchObject(stale(10))
    await again.admit('a', 10)
  })

  it('creates files that only its own user can read, and restricts those of an earlier version', async () => {
    const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
    const made = join(folder, 'made')
    const umask = process.umask(0)
    try {
      const fence = await open(made)
      for (let token = 1; token < 10_010; token++) fence.admit('a', token).catch(() => {})
      await fence.admit('a', 20_000)
    } finally {
      process.umask(umask)
    }
    expect(modeOf(made)).toBe('700')
    expect(readdirSync(made)).toContain(SECOND)
    for (const name of readdirSync(made)) expect(modeOf(join(made, name)), name).toBe('600')
    chmodSync(join(made, SECOND), 0o644)
    await open(made)
    expect(modeOf(join(made, SECOND))).toBe('600')
  })

  it('refuses a log that is not a file, without waiting for it', async () => {
    const strange = join(folder, 'strange')
    mkdirSync(strange)
    execFileSync('mkfifo', [join(strange, FIRST)])
    await expect(fileFence(strange)).rejects.toMatchObject({ code: 'storage-damaged' })
    await expect(fileFence(strange)).rejects.toThrow(`${FIRST} is not a file`)
  })

  it('refuses a path that is not a folder', async () => {
    await expect(fileFence('')).rejects.toMatchObject({ code: 'invalid-argument' })
    writeFileSync(join(folder, 'file'), '')
    const refused = fileFence(join(folder, 'file'))
    await expect(refused).rejects.toMatchObject({ code: 'storage-failed' })
  })
})

describe('processes that share a fence in a folder', () => {
  /** Starts a process that sends requests until it is killed. Returns its output. */
  async function live(name: string, ms: number): Promise<Try[]> {
    const file = join(folder, `${name}.said`)
    // Output in a file remains even if the writer dies at once.
    const output = openSync(file, 'w')
    const args = [childPrograms(CHILD)[0]!, join(folder, 'fence'), 'shared']
    const child = spawn(process.execPath, args, { stdio: ['pipe', output, 'pipe'] })
    let complaint = ''
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      complaint += text
    })
    const ended = once(child, 'close')
    while (statSync(file).size === 0 && child.exitCode === null) await pause(5)
    await pause(ms)
    child.kill('SIGKILL')
    const [, signal] = await ended
    closeSync(output)
    expect({ signal, complaint }).toEqual({ signal: 'SIGKILL', complaint: '' })
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => JSON.parse(line) as Try)
  }

  it('never admit a decreasing token, even if they are killed and replaced', async () => {
    const lanes = [0, 1, 2].map(async (lane) => {
      const said: Try[] = []
      for (let life = 0; life < 4; life++) {
        said.push(...(await live(`${lane}-${life}`, 200 + Math.random() * 400)))
      }
      return said
    })
    const tries = (await Promise.all(lanes)).flat()
    expect(fallsIn(tries)).toEqual([])
    const admitted = tries.filter((each) => each.admitted)
    expect(admitted.length).toBeGreaterThan(500)
    expect(tries.length - admitted.length).toBeGreaterThan(500)
    const highest = Math.max(...admitted.map((each) => each.token))
    const fence = await open(join(folder, 'fence'))
    await expect(fence.admit('shared', highest - 1)).rejects.toMatchObject({ code: 'stale-token' })
  }, 300_000)
})

describe('the log of a fence', () => {
  const files = () => readdirSync(folder).sort()

  async function raiseMany(fence: FileFence, from: number, count: number): Promise<void> {
    const tokens = Array.from({ length: count }, (_, index) => from + index)
    await Promise.all(tokens.map((token) => fence.admit('many', token)))
  }

  it('is replaced by a short one when it is long, and all processes follow', async () => {
    const one = await open()
    const two = await open()
    await two.admit('few', 7)
    await raiseMany(one, 1, 10_100)
    expect(files()).toEqual([FIRST, SECOND])
    expect(statSync(join(folder, FIRST)).size).toBeLessThan(100)
    expect(statSync(join(folder, SECOND)).size).toBeLessThan(20_000)
    // This one has not noticed yet. It appends to the old log, where nothing counts any more.
    await two.admit('many', 20_000)
    await expect(one.admit('many', 19_999)).rejects.toMatchObject(stale(20_000))
    await expect(one.admit('few', 6)).rejects.toMatchObject(stale(7))
    await raiseMany(two, 30_000, 10_100)
    const three = await open()
    for (const fence of [one, two, three]) {
      await expect(fence.admit('many', 40_098)).rejects.toMatchObject(stale(40_099))
      await expect(fence.admit('few', 6)).rejects.toMatchObject(stale(7))
    }
    expect(files()).toHaveLength(3)
  })

  it('is continued by the process that finds it sealed, if there is no next one', async () => {
    await (await open()).admit('a', 10)
    appendFileSync(join(folder, FIRST), formatRecord('sealed'))
    writeFileSync(join(folder, `${SECOND}.left-by-a-dead-one.tmp`), 'half')
    const [one, two] = [await open(), await open()]
    for (const fence of [one, two]) {
      await expect(fence.admit('a', 9)).rejects.toMatchObject(stale(10))
    }
    await one.admit('a', 11)
    await expect(two.admit('a', 10)).rejects.toMatchObject(stale(11))
    await open()
    expect(files()).toEqual([FIRST, SECOND])
  })

  it('is refused if its successor is missing', async () => {
    const fence = await open()
    await raiseMany(fence, 1, 10_100)
    rmSync(join(folder, SECOND))
    await expect(open()).rejects.toMatchObject({ code: 'storage-damaged' })
  })

  /** A log with two records, the last with the higher token, and the offset of the last one. */
  async function twoRecords(): Promise<{ whole: Buffer; last: number }> {
    const fence = await open()
    await fence.admit('a/ü', 9)
    const last = statSync(join(folder, FIRST)).size
    await fence.admit('a/ü', 10)
    await fence.close()
    return { whole: readFileSync(join(folder, FIRST)), last }
  }

  it('may be cut anywhere: complete records count, and it continues', async () => {
    const { whole, last } = await twoRecords()
    for (let length = 0; length <= whole.length; length++) {
      for (const filling of ['', '\0'.repeat(40)]) {
        const copy = join(folder, `cut-${length}-${filling.length}`)
        cpSync(join(folder, FIRST), join(copy, FIRST))
        truncateSync(join(copy, FIRST), length)
        appendFileSync(join(copy, FIRST), filling)
        const fence = await open(copy)
        // A record without only its line end is complete.
        const highest = length >= whole.length - 1 ? 10 : length >= last - 1 ? 9 : 0
        if (highest > 0) {
          await expect(fence.admit('a/ü', 8)).rejects.toMatchObject(stale(highest))
        }
        await fence.admit('a/ü', 11)
        await expect((await open(copy)).admit('a/ü', 10)).rejects.toMatchObject(stale(11))
      }
    }
  })

  it('is refused or loses nothing, whichever bit is flipped', async () => {
    const { whole } = await twoRecords()
    let refused = 0
    for (let bit = 0; bit < whole.length * 8; bit++) {
      const copy = join(folder, `bit-${bit}`)
      const bytes = Buffer.from(whole)
      bytes[bit >> 3]! ^= 1 << (bit & 7)
      cpSync(join(folder, FIRST), join(copy, FIRST))
      writeFileSync(join(copy, FIRST), bytes)
      const fence = await fileFence(copy).catch((error: unknown) => {
        expect(error).toMatchObject({ code: 'storage-damaged' })
        refused++
      })
      if (!fence) continue
      const judged = await fence.admit('a/ü', 9).catch((error: { code: string }) => error.code)
      expect(['stale-token', 'storage-damaged'], `bit ${bit}`).toContain(judged)
      await fence.close()
    }
    expect(refused).toBeGreaterThan(whole.length * 7)
  })

  it('that has become shorter is refused', async () => {
    const fence = await open()
    await fence.admit('a', 9)
    truncateSync(join(folder, FIRST), 5)
    await expect(fence.admit('a', 10)).rejects.toMatchObject({ code: 'storage-damaged' })
  })
})

describe('a file that is written with a token', () => {
  it('is not replaced by a writer that was paused too long', async () => {
    const fence = await open(join(folder, 'fence'))
    const path = join(folder, 'report.txt')
    await fence.writeFile('report', 9, path, 'by nine')
    await fence.writeFile('report', 10, path, Buffer.from('by ten'))
    const late = fence.writeFile('report', 9, path, 'late')
    await expect(late).rejects.toMatchObject(stale(10))
    expect(readFileSync(path, 'utf8')).toBe('by ten')
    await fence.writeFile('report', 10, path, 'by ten again')
    expect(readFileSync(path, 'utf8')).toBe('by ten again')
    expect(readdirSync(folder).sort()).toEqual(['fence', 'report.txt'])
  })

  it('is not replaced by a writer that was admitted, if a newer one was admitted since', async () => {
    const newer = await open(join(folder, 'fence'))
    let overtaking: Promise<void> | undefined
    const id = () => {
      // It asks for the name of its temporary file: it was admitted and has not started to write.
      overtaking = newer.admit('report', 10)
      return systemRandom.id()
    }
    const older = await open(join(folder, 'fence'), { random: { next: systemRandom.next, id } })
    const path = join(folder, 'report.txt')
    const late = older.writeFile('report', 9, path, 'by nine')
    await expect(late).rejects.toMatchObject(stale(10))
    await overtaking
    expect(existsSync(path)).toBe(false)
    expect(readdirSync(folder)).toEqual(['fence'])
  })

  it('has the content of the newest of many writers, and never older content again', async () => {
    const path = join(folder, 'report.txt')
    const fences = [await open(join(folder, 'fence')), await open(join(folder, 'fence'))]
    const count = 60
    let isOver = false
    const read: number[] = []
    const reading = (async () => {
      while (!isOver) {
        if (existsSync(path)) read.push(Number(readFileSync(path, 'utf8')))
        await pause(0)
      }
    })()
    const tokens = Array.from({ length: count }, (_, index) => index + 1)
    const writes = tokens.map((token) =>
      fences[token % 2]!.writeFile('report', token, path, String(token)),
    )
    await Promise.allSettled(writes)
    isOver = true
    await reading
    expect(readFileSync(path, 'utf8')).toBe(String(count))
    expect(read).toEqual([...read].sort((a, b) => a - b))
  })

  it('reports if it cannot be written', async () => {
    const fence = await open(join(folder, 'fence'))
    const failed = fence.writeFile('report', 9, join(folder, 'nowhere/report.txt'), 'text')
    await expect(failed).rejects.toMatchObject({ code: 'storage-failed', outcome: 'unknown' })
  })
})
