import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { childPrograms } from '../../../setup/child-programs.ts'
import { CrashModel } from './crash-model.ts'
import { CRASH_OPTIONS, type Line } from './crash-options.ts'

const CHILD = fileURLToPath(new URL('./crash-child.ts', import.meta.url))
const LANES = 4
const LIVES = 26
/** The maximum output of a process before it is killed. */
const SAID_MAX = 30_000

/** Runs a process on the folder and kills it at a random moment. Returns its output until then. */
async function live(folder: string, life: string): Promise<Line[]> {
  const file = `${folder}.said`
  // A file keeps what was written even if the writer dies at once, and writing never waits.
  const output = openSync(file, 'w+')
  const child = spawn(process.execPath, [childPrograms(CHILD)[0]!, folder, life], {
    stdio: ['pipe', output, 'pipe'],
  })
  let complaint = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    complaint += text
  })
  const ended = once(child, 'close')
  // After an amount of work, not of time: a busy machine then does the same.
  const enough = 1 + Math.random() * SAID_MAX
  while (fstatSync(output).size < enough && child.exitCode === null) await sleep(1)
  setTimeout(() => child.kill('SIGKILL'), Math.random() * 5)
  const [code, signal] = await ended
  expect({ code, signal, complaint }).toEqual({ code: null, signal: 'SIGKILL', complaint: '' })
  closeSync(output)
  const lines = readFileSync(file, 'utf8').split('\n')
  rmSync(file)
  // The last line is empty or cut off: it does not count.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as Line)
}

async function lane(number: number): Promise<{ answers: number; snapshots: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-crash-'))
  const model = new CrashModel()
  let snapshots = 0
  try {
    for (let life = 0; life < LIVES; life++) {
      model.hear(await live(folder, `${number}-${life}`))
      const store = await fileStore(folder, CRASH_OPTIONS)
      await model.check(store)
      await model.thin(store)
      await store.close()
      const last = readdirSync(folder)
        .filter((name) => name.startsWith('snapshot'))
        .at(-1)
      snapshots = Math.max(snapshots, Number(last?.slice(9) ?? 0))
    }
    return { answers: model.answers, snapshots }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe('a process that is killed', () => {
  it(`${LANES * LIVES} times under load loses nothing that it has answered`, async () => {
    const lanes = await Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)))
    for (const { answers, snapshots } of lanes) {
      expect(answers).toBeGreaterThan(500)
      expect(snapshots).toBeGreaterThan(2)
    }
  }, 400_000)
})
