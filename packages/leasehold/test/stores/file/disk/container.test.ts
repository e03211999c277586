import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fileStore } from '../../../../src/stores/file/index.ts'

const CHILD = fileURLToPath(new URL('./lock-child.ts', import.meta.url))
const OPTIONS = { segmentBytes: 65_536 }
/** The private parts of a container; all share the folder, like a volume. */
const CONTAINER = ['--pid', '--fork', '--mount-proc', '--net', '--uts', '--ipc']

const obstacle = findObstacle()

function findObstacle(): string | undefined {
  try {
    execFileSync('unshare', [...CONTAINER, 'true'], { stdio: 'pipe' })
    return undefined
  } catch (error) {
    return `no namespaces can be made here: ${(error as Error).message.split('\n')[0]}`
  }
}

interface Running {
  readonly said: string
  /** Its process id outside the container. */
  readonly pid: number
  kill(): Promise<void>
}

// Skipped if this user may not create namespaces; the name gives the reason.
describe.skipIf(obstacle !== undefined)(`a folder that containers share ${obstacle ?? ''}`, () => {
  let root: string
  let folder: string
  let children: ChildProcess[]

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'leasehold-container-'))
    folder = join(root, 'data')
    children = []
  })

  afterEach(async () => {
    for (const child of children) child.stdin!.end()
    await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')))
    rmSync(root, { recursive: true, force: true })
  })

  async function start(...args: string[]) {
    // `unshare` may complain about a signal mask, which is of no interest here.
    const child = spawn('unshare', args, { stdio: ['pipe', 'pipe', 'ignore'] })
    children.push(child)
    const [said] = await once(child.stdout!, 'data')
    return { child, said: String(said).trim() }
  }

  /** Opens the folder in a new container. */
  async function container(): Promise<Running> {
    const node = [process.execPath, '--import', 'tsx', CHILD, folder]
    const { child, said } = await start(...CONTAINER, '--kill-child', ...node)
    const inner = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
    const kill = async () => {
      process.kill(Number(inner), 'SIGKILL')
      await once(child, 'exit')
    }
    return { said, pid: Number(inner), kill }
  }

  it('is taken over from a killed container, by another and from outside', async () => {
    const first = await container()
    expect(first.said).toBe('opened')
    await first.kill()
    const second = await container()
    expect(second.said).toBe('opened')
    await second.kill()
    const store = await fileStore(folder, OPTIONS)
    await store.close()
  })

  it('is refused while one lives, running or frozen', async () => {
    const first = await container()
    const second = await container()
    expect(second.said).toMatch(/^storage-locked: .* is owned by process 1 in another container: /)
    process.kill(first.pid, 'SIGSTOP')
    await expect(fileStore(folder, OPTIONS)).rejects.toMatchObject({ code: 'storage-locked' })
    process.kill(first.pid, 'SIGCONT')
  })

  it('has one owner, however many openers compete for the folder of a killed one', async () => {
    const dead = await container()
    await dead.kill()
    const said = (await Promise.all(Array.from({ length: 6 }, container))).map((each) => each.said)
    expect(said.filter((each) => each === 'opened')).toHaveLength(1)
    expect(said.filter((each) => each.startsWith('storage-locked'))).toHaveLength(5)
  })

  it('may have a path that is too long for a socket', async () => {
    folder = join(root, 'long-'.repeat(30), 'data')
    mkdirSync(folder, { recursive: true })
    const first = await container()
    expect(first.said).toBe('opened')
    await expect(fileStore(folder, OPTIONS)).rejects.toMatchObject({ code: 'storage-locked' })
    await first.kill()
    const store = await fileStore(folder, OPTIONS)
    await store.close()
  })

  it('is free after its own machine was switched off, but not after another on a network was', async () => {
    const owner = { pid: 1, started: '1', host: 'other', boot: 'another boot', pidNamespace: 'x' }
    mkdirSync(folder)
    writeFileSync(join(folder, 'owner-before'), JSON.stringify(owner))
    const store = await fileStore(folder, OPTIONS)
    await store.close()
    // A file system that is not known to be of one machine, as a network's is not.
    for (const host of ['other', hostname()]) {
      const text = JSON.stringify({ ...owner, host })
      const command = `mount -t ramfs none "$1" && printf %s '${text}' > "$1/owner-before" && exec "$2" --import tsx "$3" "$1"`
      const node = [process.execPath, CHILD]
      const { said } = await start('--mount', 'sh', '-c', command, 'sh', folder, ...node)
      expect(said).toMatch(
        /^storage-locked: .*cannot see whether that one still runs.*delete .*owner-before/,
      )
    }
  })
})
