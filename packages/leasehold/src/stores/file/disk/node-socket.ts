import { constants } from 'node:fs'
import { chmod, lstat, open, rename, rm, statfs } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { FILE_MODE } from './node-files.ts'

/**
 * File systems of this machine's own kernel. Only on these does every process of the machine, in
 * any container, reach the same socket. And only on these does a mount prove that the previous boot
 * has ended.
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
 * A socket in the folder that this process listens on. The kernel closes it when the process has
 * ended, after its last write; from then on connections are refused. So it proves to every process
 * on the machine whether the owner lives, even in another container, where process ids mean
 * nothing.
 */
export class OwnerSocket {
  readonly #server: Server
  readonly #path: string
  /** Distinguishes it from another file with the same name. */
  readonly inode: string

  private constructor(server: Server, path: string, inode: string) {
    this.#server = server
    this.#path = path
    this.inode = inode
  }

  /**
   * `unsupported` if the file system has no sockets. `gone` if another process, which had just
   * become the owner, removed the unfinished socket.
   */
  static async bind(folder: string, name: string): Promise<OwnerSocket | 'unsupported' | 'gone'> {
    const path = join(folder, name)
    const temporary = `${path}.tmp`
    const server = createServer((connection) => connection.destroy())
    try {
      // Rename it only when it listens: until then connections would be refused.
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

/** Whether a process listens on this socket. `unknown` if it is missing or has another inode. */
export async function probeSocket(
  folder: string,
  name: string,
  inode: string | undefined,
): Promise<'alive' | 'dead' | 'unknown'> {
  try {
    const stat = await lstat(join(folder, name), { bigint: true })
    if (!stat.isSocket() || (inode !== undefined && String(stat.ino) !== inode)) return 'unknown'
    await inFolder(folder, (base) => tryConnect(join(base, name)))
    return 'alive'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED' ? 'dead' : 'unknown'
  }
}

/** The path of a socket has at most 107 bytes, but folder paths are longer: so use a descriptor. */
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
    // Without `exclusive`, the primary of a cluster would listen for its worker, and outlive it.
    server.listen({ path, exclusive: true }, resolve)
  })
}

function tryConnect(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const connection = connect(path)
    connection.once('error', reject)
    connection.once('connect', () => {
      connection.destroy()
      resolve()
    })
  })
}
