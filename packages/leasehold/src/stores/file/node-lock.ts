import { lstat, readdir, readFile, readlink, rename, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { type Clock, LeaseholdError, type Random } from '../../port/index.ts'
import { isFull, type Lock } from './disk.ts'
import { FILE_MODE } from './node-files.ts'
import { isLocal, OwnerSocket, probeSocket } from './node-socket.ts'

/** Who owns a folder. What a system cannot tell is empty. */
interface Owner {
  readonly pid: number
  /** When the process started, since a process id is given again. */
  readonly started: string
  readonly host: string
  /** Names the time since the machine was switched on. */
  readonly boot: string
  /** Process ids mean something only within it. */
  readonly pidNamespace: string
  /** The inode of its socket: see `node-socket.ts`. None where it has no socket that proves anything. */
  readonly socket?: string | undefined
  /** Whether it owns the folder, or only asks for it. */
  readonly owns: boolean
}

/** What a process knows of itself and of the folder. */
interface Self extends Owner {
  readonly isLocal: boolean
}

interface Found {
  readonly file: string
  /** Nothing where the file does not say. */
  readonly owner: Owner | undefined
  /** `unknown` where it cannot be told from here: it must be taken to live. */
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
 * Node has no file locks, so this is a protocol on files, and this is why no two can own a folder:
 * every opener first puts down a file with a name of its own, whole from the first moment (it is
 * renamed into place), and only then lists the files of the others. Of two openers the one whose
 * listing began later finds the file of the other, which was put down before that one's listing
 * began. Whoever finds the file of a living process takes its own away and does not own the folder.
 *
 * A dead owner's file is in nobody's way: it is ignored and, once the folder is owned, removed.
 * Names are never used twice, so removing it cannot take away the file of a living one. (With one
 * name for all, between judging a file dead and removing it another opener may have replaced it.)
 *
 * Whether another lives is asked of the kernel, through a socket that each opener listens on before
 * it puts its file down (`node-socket.ts`). Where that is not possible, the process id decides.
 *
 * Whoever finds one that says it owns the folder gives up at once. Of those who only ask, come at
 * once and find each other, the one whose name comes first leaves its file where it is and looks
 * again, and the others step back, each time for longer: so the first one finds itself alone.
 */
export async function lockFolder(folder: string, clock: Clock, random: Random): Promise<Lock> {
  const self = await describeSelf(folder)
  const name = `owner-${random.id()}`
  const path = join(folder, name)
  let socket: OwnerSocket | 'unsupported' | 'gone' = self.isLocal ? 'gone' : 'unsupported'
  let wait = WAIT_MS
  let found: Found | undefined
  let isDown = false
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
      isDown ||= await putDown(path, { ...self, ...proof })
      if (!isDown) continue
      const others = await readOthers(folder, name, self)
      const living = others.filter(({ life }) => life !== 'dead')
      if (living.length === 0) {
        owned = await putDown(path, { ...self, ...proof, owns: true })
        if (!owned) continue
        await tidy(folder, name, others)
        return { release }
      }
      // One that does not say that it only asks must be taken for an owner.
      const owner = living.find((other) => other.owner?.owns !== false)
      found = owner ?? living[0]
      if (owner) break
      if (living.some(({ file }) => file < name)) {
        await rm(path, { force: true })
        isDown = false
        wait = Math.min(2 * wait, WAIT_MAX_MS)
      }
    }
  } finally {
    if (!owned) await release()
  }
  throw locked(folder, found, self)
}

/** Whether it is down; not where one who had just become the owner tidied the unfinished file away. */
async function putDown(path: string, { isLocal: _, ...owner }: Self): Promise<boolean> {
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
      `${path} cannot be written: there is no space left. Free some and open the store again; nothing in it is lost`,
      { cause: error },
    )
  }
}

/** Removes what dead owners left, and what was never put down whole. */
async function tidy(folder: string, own: string, dead: readonly Found[]): Promise<void> {
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
      // Reading a fifo would wait for somebody to write to it.
      const isFile = (await lstat(path)).isFile()
      const owner = isFile ? parseOwner(await readFile(path, 'utf8')) : undefined
      const life = owner ? await lifeOf(owner, self, folder, file) : 'unknown'
      others.push({ file, owner, life })
    } catch (error) {
      // It was taken away between the listing and the reading: it owns nothing.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  return others
}

async function lifeOf(owner: Owner, self: Self, folder: string, file: string): Promise<Life> {
  if (owner.boot !== self.boot) {
    // A local disk is mounted by one boot at a time. Over a network the other may be running.
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

/** Whether it is on another machine, as far as the names say: where a system cannot name its boot. */
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

/** When a process started; `undefined` where there is none, empty where the system cannot say. */
async function startOf(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux') {
    const stat = await readOr(`/proc/${pid}/stat`)
    if (stat === '') return isRunning(pid) ? '' : undefined
    // The name of the program, in brackets, may itself hold brackets and spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A zombie has ended, if it is the last of its threads: another may still be writing.
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

function parseOwner(text: string): Owner | undefined {
  try {
    const owner = JSON.parse(text) as Owner
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
      `${folder} may be owned by another process, but ${file} does not say by which: delete it if no process uses the folder`,
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
      : `${folder} is owned by process ${owner.pid}${where}, and whether that still runs cannot be seen from here. If it is certainly gone, delete ${file}`,
  )
}

function pause(clock: Clock, milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    clock.timer(clock.now() + milliseconds, resolve, true)
  })
}
