import { lstat, readdir, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { type Clock, LeaseholdError, type Random } from '../../../port/index.ts'
import { isFull, type Lock } from './disk.ts'
import { FILE_MODE } from './node-files.ts'
import { isLocal, OwnerSocket, probeSocket } from './node-socket.ts'

/** The owner of a folder. A field is empty if the system cannot tell it. */
interface Owner {
  readonly pid: number
  /** When the process started, because systems reuse process ids. */
  readonly started: string
  readonly host: string
  /** Identifies the boot of the machine. */
  readonly boot: string
  /** A process id has a meaning only within its namespace. */
  readonly pidNamespace: string
  /** The inode of its socket (`node-socket.ts`). Missing without a socket that proves anything. */
  readonly socket?: string | undefined
  /** Whether it owns the folder, or only requests it. */
  readonly owns: boolean
}

interface Self extends Owner {
  readonly isLocal: boolean
}

interface Found {
  readonly file: string
  /** `undefined` if the file does not say. */
  readonly owner: Owner | undefined
  /** `unknown` if this process cannot tell: then it must assume that the owner lives. */
  readonly life: Life
}

type Life = 'alive' | 'dead' | 'unknown'

const NAME = /^owner-[\w-]+$/
const SOCKET = /^(owner-[\w-]+)\.socket$/
const UNFINISHED = /^owner-[\w-]+(\.socket)?\.tmp$/
const ATTEMPTS = 40
const WAIT_MS = 10
const WAIT_MAX_MS = 500

/**
 * Makes this process the owner of the folder.
 *
 * Node has no file locks, so this is a protocol on files. Every opener first creates a file with a
 * unique name, complete from the start because it is renamed into place. Only then it lists the
 * files of the others. So no two openers can own the folder: the one that lists later finds the
 * file of the other. An opener that finds the file of a living process removes its own and gives
 * up.
 *
 * The file of a dead owner blocks nobody: openers ignore it, and the new owner removes it. Names
 * are never reused, so this cannot remove the file of a living process. (If all used one name,
 * another opener could replace the file between the check and the removal.)
 *
 * An opener asks the kernel whether another one lives, through a socket that each opener listens on
 * before it creates its file (`node-socket.ts`). If that is impossible, the process id decides.
 *
 * An opener that finds an owner gives up at once. If several that only request the folder find each
 * other, the one with the first name keeps its file and looks again. The others remove theirs and
 * wait, longer each time. So the first one finds itself alone.
 */
export async function lockFolder(folder: string, clock: Clock, random: Random): Promise<Lock> {
  const self = await describeSelf(folder)
  const name = `owner-${random.id()}`
  const path = join(folder, name)
  let socket: OwnerSocket | 'unsupported' | 'gone' = self.isLocal ? 'gone' : 'unsupported'
  let wait = WAIT_MS
  let found: Found | undefined
  let isWritten = false
  let owned = false
  const release = async () => {
    await rm(path, { force: true })
    if (typeof socket === 'object') await socket.close()
  }
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (attempt > 0) await pause(clock, wait * (0.5 + random.next()))
      if (socket === 'gone') socket = await OwnerSocket.bind(folder, socketName(name))
      if (socket === 'gone') continue
      const proof = typeof socket === 'object' ? { socket: socket.inode } : {}
      isWritten ||= await writeOwner(path, { ...self, ...proof })
      if (!isWritten) continue
      const others = await readOthers(folder, name, self)
      const living = others.filter(({ life }) => life !== 'dead')
      if (living.length === 0) {
        owned = await writeOwner(path, { ...self, ...proof, owns: true })
        if (!owned) continue
        await removeDead(folder, name, others)
        return { release }
      }
      // If a file does not say that its process only requests the folder, assume that it is the
      // owner.
      const owner = living.find((other) => other.owner?.owns !== false)
      found = owner ?? living[0]
      if (owner) break
      if (living.some(({ file }) => file < name)) {
        await rm(path, { force: true })
        isWritten = false
        wait = Math.min(2 * wait, WAIT_MAX_MS)
      }
    }
  } finally {
    if (!owned) await release()
  }
  throw locked(folder, found, self)
}

/** Returns false if a process that had just become the owner removed the unfinished file. */
async function writeOwner(path: string, { isLocal: _, ...owner }: Self): Promise<boolean> {
  const temporary = `${path}.tmp`
  try {
    await writeFile(temporary, `${JSON.stringify(owner)}\n`, { mode: FILE_MODE })
    await rename(temporary, path)
    return true
  } catch (error) {
    await rm(temporary, { force: true })
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    if (!isFull(error)) throw error
    throw new LeaseholdError(
      'storage-full',
      `${path} cannot be written: the disk is full. Nothing in the store is lost. Free some space and open it again`,
      { cause: error },
    )
  }
}

/** Removes the files of dead owners, and files that were never finished. */
async function removeDead(folder: string, own: string, dead: readonly Found[]): Promise<void> {
  for (const { file } of dead) {
    await rm(join(folder, file), { force: true })
    await rm(join(folder, socketName(file)), { force: true })
  }
  for (const file of await readdir(folder)) {
    const [, owner] = SOCKET.exec(file) ?? []
    const isLeft =
      owner !== undefined &&
      owner !== own &&
      (await probeSocket(folder, file, undefined)) === 'dead'
    if (isLeft || UNFINISHED.test(file)) await rm(join(folder, file), { force: true })
  }
}

function socketName(owner: string): string {
  return `${owner}.socket`
}

async function readOthers(folder: string, own: string, self: Self): Promise<Found[]> {
  const others: Found[] = []
  for (const file of await readdir(folder)) {
    if (file === own || !NAME.test(file)) continue
    try {
      const path = join(folder, file)
      // Reading a fifo would wait until another process writes to it.
      const isFile = (await lstat(path)).isFile()
      const owner = isFile ? parseOwner(await readFile(path, 'utf8')) : undefined
      const life = owner ? await lifeOf(owner, self, folder, file) : 'unknown'
      others.push({ file, owner, life })
    } catch (error) {
      // It was removed between the listing and the reading, so it owns nothing.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  return others
}

async function lifeOf(owner: Owner, self: Self, folder: string, file: string): Promise<Life> {
  if (owner.boot !== self.boot) {
    // A local disk is mounted by one boot at a time. Over a network, the other machine may be
    // running.
    return self.isLocal && owner.boot !== '' && self.boot !== '' ? 'dead' : 'unknown'
  }
  if (isElsewhere(owner, self)) return 'unknown'
  if (self.isLocal && owner.socket !== undefined) {
    const life = await probeSocket(folder, socketName(file), owner.socket)
    if (life !== 'unknown') return life
  }
  if (owner.pidNamespace !== self.pidNamespace) return 'unknown'
  return (await startOf(owner.pid)) === owner.started ? 'alive' : 'dead'
}

/** Whether it is on another host, for systems that cannot name their boot. */
function isElsewhere(owner: Owner, self: Self): boolean {
  return owner.boot === '' && owner.host !== self.host
}

async function describeSelf(folder: string): Promise<Self> {
  return {
    isLocal: await isLocal(folder),
    pid: process.pid,
    started: (await startOf(process.pid)) ?? '',
    host: hostname(),
    boot: await readOr('/proc/sys/kernel/random/boot_id'),
    pidNamespace: await readlink('/proc/self/ns/pid').catch(() => ''),
    owns: false,
  }
}

/** When a process started; `undefined` if it does not run, empty if the system cannot say. */
async function startOf(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux') {
    const stat = await readOr(`/proc/${pid}/stat`)
    if (stat === '') return isRunning(pid) ? '' : undefined
    // The name of the program, in brackets, may itself contain brackets and spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A zombie has ended only if it is the last of its threads: another thread may still be
    // writing.
    if ((fields[0] === 'Z' || fields[0] === 'X') && Number(fields[17]) <= 1) return undefined
    return fields[19] ?? ''
  }
  return isRunning(pid) ? '' : undefined
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function parseOwner(json: string): Owner | undefined {
  try {
    const owner = JSON.parse(json) as Owner
    return Number.isInteger(owner.pid) && owner.pid > 0 ? owner : undefined
  } catch {
    return undefined
  }
}

async function readOr(path: string): Promise<string> {
  return (await readFile(path, 'utf8').catch(() => '')).trim()
}

function locked(folder: string, found: Found | undefined, self: Self): LeaseholdError {
  const file = join(folder, found?.file ?? '')
  if (!found?.owner) {
    return new LeaseholdError(
      'storage-locked',
      `${folder} may be owned by another process, but ${file} does not say which. Delete that file if no process uses the folder`,
    )
  }
  const { owner, life } = found
  const isHere = owner.boot === self.boot && owner.pidNamespace === self.pidNamespace
  const where =
    isHere && !isElsewhere(owner, self)
      ? ''
      : life === 'alive'
        ? ' in another container'
        : ` on ${owner.host}`
  return new LeaseholdError(
    'storage-locked',
    life === 'alive'
      ? `${folder} is owned by process ${owner.pid}${where}: a folder has one owner at a time. Stop that process, open its store over the network, or use another folder`
      : `${folder} is owned by process ${owner.pid}${where}, and this process cannot see whether that one still runs. If it has certainly ended, delete ${file}`,
  )
}

function pause(clock: Clock, milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    clock.timer(clock.now() + milliseconds, resolve, true)
  })
}
