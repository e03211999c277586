import { createHash } from 'node:crypto'
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, posix, relative, resolve, sep } from 'node:path'
import { invalid, type Key, type Mode, show } from 'leasehold/port'

/**
 * Paths of files as keys. All worktrees of a repository share one git directory, so it names the
 * repository, and a path is counted from the root of its worktree: the same file has the same key in
 * all of them. The functions use no git process, because a hook calls them before every edit.
 */

/** All keys of files begin with this. */
export const REPOSITORY_PREFIX = 'repo/'
/** A file outside of every repository counts from the root of the file system. */
const NO_REPOSITORY = '-'
/** The longest key; a longer path ends with a hash, so that it still has one key. */
const KEY_MAX = 480
const HASH_LENGTH = 8
const POINTER_MAX = 4096

export interface FilePath {
  /** The key of its repository, such as `repo/shop-1a2b3c4d`. */
  readonly repository: Key
  /** The path from the root of its worktree; empty for the root itself. */
  readonly path: string
}

export interface PathOptions {
  /**
   * The folder that relative paths count from. Without it the files are on another machine: paths
   * then count from the root of the repository, and `repository` must be given.
   */
  readonly folder?: string | undefined
  /** The name of the repository, if machines with different folders must agree on it. */
  readonly repository?: string | undefined
}

/** Where a path is. A path that does not exist yet is allowed: it may be about to be created. */
export function filePath(given: string, { folder, repository }: PathOptions): FilePath {
  if (typeof given !== 'string' || given === '' || given.includes('\0')) {
    const from = folder === undefined ? 'from the root' : `absolute or from ${show(folder)}`
    throw invalid(
      `path is ${show(given)}: give a file or folder, ${from}, such as 'src/index.ts', or '.' for all of it`,
    )
  }
  if (folder === undefined) return remotePath(given, repository)
  const absolute = realPath(resolve(folder, given))
  const root = worktreeOf(absolute)
  const path = root === undefined ? absolute : relative(root.folder, absolute)
  const name = repositoryName(root, folder, repository)
  return { repository: REPOSITORY_PREFIX + name, path: partsOf(path).join('/') }
}

/** A given name is that of the folder's repository. A file in another one keeps the other's name. */
function repositoryName(
  root: Worktree | undefined,
  folder: string,
  repository: string | undefined,
): string {
  if (repository !== undefined) {
    const name = checkedName(repository)
    if (root?.common === worktreeOf(realPath(folder))?.common) return name
  }
  return root === undefined ? NO_REPOSITORY : nameOf(root.common)
}

/** A path on another machine, which cannot be looked at. */
function remotePath(given: string, repository: string | undefined): FilePath {
  if (repository === undefined) {
    throw invalid(
      "this connection does not say which repository its paths are in. Ask your user to add '?repository=NAME' to the URL of the MCP server, with the same name for all agents of the repository. Until then use keys instead of paths",
    )
  }
  const path = posix.normalize(given.replaceAll('\\', '/'))
  if (posix.isAbsolute(path) || /^[a-z]:/i.test(path) || path.split('/')[0] === '..') {
    throw invalid(
      `path is ${show(given)}: over HTTP, give paths from the root of the repository, such as 'src/index.ts', or '.' for all of it`,
    )
  }
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  return { repository: REPOSITORY_PREFIX + checkedName(repository), path: parts.join('/') }
}

/** The key of a file or folder. */
export function keyOf({ repository, path }: FilePath): Key {
  return shortened(path === '' ? repository : `${repository}/${path}`)
}

/** The keys of all folders above it, the repository first. */
export function keysAbove({ repository, path }: FilePath): Key[] {
  if (path === '') return []
  const parts = path.split('/')
  return parts.map((_, at) => keyOf({ repository, path: parts.slice(0, at).join('/') }))
}

export interface PathClaim {
  readonly key: Key
  readonly mode: Mode
}

/**
 * The claims for paths: the mode on each path, and a shared claim on every folder above. So a folder
 * excludes what is in it, and the other way round, but two files beside each other do not exclude each
 * other. All claims are made in one step, so two requests cannot wait for each other.
 */
export function claimsFor(paths: readonly FilePath[], mode: Mode): PathClaim[] {
  const modes = new Map<Key, Mode>()
  for (const path of paths) {
    for (const key of keysAbove(path)) modes.set(key, 'shared')
  }
  for (const path of paths) modes.set(keyOf(path), mode)
  return [...modes].map(([key, each]) => ({ key, mode: each }))
}

interface Worktree {
  readonly folder: string
  /** The git directory that all worktrees share. */
  readonly common: string
}

function worktreeOf(absolute: string): Worktree | undefined {
  for (let folder = absolute; ; folder = dirname(folder)) {
    const common = commonFolderOf(join(folder, '.git'))
    if (common !== undefined) return { folder, common }
    if (dirname(folder) === folder) return undefined
  }
}

/** `.git` is the shared directory itself, or a file that points to the directory of a worktree. */
function commonFolderOf(git: string): string | undefined {
  if (isFolder(git)) return realPath(git)
  const [, pointer] = /^gitdir: (.+)$/m.exec(readSmall(git) ?? '') ?? []
  if (pointer === undefined) return undefined
  const own = isAbsolute(pointer) ? pointer : resolve(dirname(git), pointer)
  const common = readSmall(join(own, 'commondir'))?.trim()
  return realPath(common ? resolve(own, common) : own)
}

/** Nothing is a folder below a file, or where this process may not look. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

function readSmall(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').slice(0, POINTER_MAX)
  } catch {
    return undefined
  }
}

/**
 * Follows links in the part of the path that exists, and spells it as the file system does: some
 * ignore case.
 */
function realPath(absolute: string): string {
  try {
    return realpathSync.native(absolute)
  } catch {
    const parent = dirname(absolute)
    return parent === absolute ? absolute : join(realPath(parent), basename(absolute))
  }
}

/** The folder's name for people, and a hash of the whole path, because many are called `app`. */
function nameOf(common: string): string {
  const folder = basename(common) === '.git' ? dirname(common) : common
  return `${basename(folder).replaceAll(/[^\w.-]/g, '_')}-${hashOf(common)}`
}

function checkedName(repository: string): string {
  if (/^[\w.-]{1,64}$/.test(repository)) return repository
  throw invalid(
    `the repository is called ${show(repository)}: use 1 to 64 letters, digits and . _ -`,
  )
}

function partsOf(path: string): string[] {
  return path.split(sep).filter((part) => part !== '' && part !== '.')
}

function shortened(key: string): Key {
  if (key.length <= KEY_MAX && key.isWellFormed()) return key
  return `${key.slice(0, KEY_MAX - 80).toWellFormed()}~${createHash('sha256').update(key).digest('hex')}`
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, HASH_LENGTH)
}
