import { constants } from 'node:fs'
import { chmod, lstat, open, rename, rm, statfs } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { FILE_MODE } from './node-files.ts'

/**
 * File systems of this machine's own kernel. On these alone does every process of the machine that
 * has the folder, from whichever container, reach the same socket; and a boot that has mounted one
 * has taken it over from the boot before.
 */
const LOCAL = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // xfs
  0x9123683e, // btrfs
  0x2fc12fc1, // zfs
  0xf2f52010, // f2fs
  0xca451a4e, // bcachefs
  0x01021994, // tmpfs
  0x794c7630, // overlayfs
])

export async function isLocal(folder: string): Promise<boolean> {
  if (process.platform !== 'linux') return false
  return LOCAL.has((await statfs(folder)).type >>> 0)
}

/**
 * A socket with a name in the folder, that this process listens on. The kernel closes it when the
 * process has ended, after the last of its writes: from then on connecting to it is refused.
 * So it proves the life or death of an owner to every process on the machine, also where process
 * ids mean nothing, in another container.
 */
export class OwnerSocket {
  readonly #server: Server
  readonly #path: string
  /** Tells it from another file of the same name. */
  readonly inode: string

  private constructor(server: Server, path: string, inode: string) {
    this.#server = server
    this.#path = path
    this.inode = inode
  }

  /**
   * `unsupported` where the file system has no sockets; `gone` where another process that has just
   * become the owner took the unfinished socket away.
   */
  static async bind(folder: string, name: string): Promise<OwnerSocket | 'unsupported' | 'gone'> {
    const path = join(folder, name)
    const temporary = `${path}.tmp`
    const server = createServer((connection) => connection.destroy())
    try {
      // It gets its name only when it listens: until then connecting to it would be refused.
      await inFolder(folder, (base) => listen(server, join(base, `${name}.tmp`)))
    } catch {
      server.close()
      return 'unsupported'
    }
    server.on('error', () => {})
    server.unref()
    try {
      await chmod(temporary, FILE_MODE)
      const { ino } = await lstat(temporary, { bigint: true })
      await rename(temporary, path)
      return new OwnerSocket(server, path, String(ino))
    } catch (error) {
      server.close()
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'gone'
      throw error
    }
  }

  async close(): Promise<void> {
    this.#server.close()
    await rm(this.#path, { force: true })
  }
}

/**
 * Whether a process listens on the socket with this name. `unknown` where that cannot be told: it is
 * not there, or is not the socket with this inode.
 */
export async function probeSocket(
  folder: string,
  name: string,
  inode: string | undefined,
): Promise<'alive' | 'dead' | 'unknown'> {
  try {
    const stat = await lstat(join(folder, name), { bigint: true })
    if (!stat.isSocket() || (inode !== undefined && String(stat.ino) !== inode)) return 'unknown'
    await inFolder(folder, (base) => reach(join(base, name)))
    return 'alive'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED' ? 'dead' : 'unknown'
  }
}

/** The path of a socket has at most 107 bytes, that of a folder more: so the folder goes by number. */
async function inFolder<T>(folder: string, use: (base: string) => Promise<T>): Promise<T> {
  const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    return await use(`/proc/self/fd/${handle.fd}`)
  } finally {
    await handle.close()
  }
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    // Otherwise, in a worker of a cluster, the primary would listen and outlive it.
    server.listen({ path, exclusive: true }, resolve)
  })
}

function reach(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const connection = connect(path)
    connection.once('error', reject)
    connection.once('connect', () => {
      connection.destroy()
      resolve()
    })
  })
}
