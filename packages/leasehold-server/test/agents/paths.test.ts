import { execFileSync } from 'node:child_process'
import { mkdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { claimsFor, filePath, keyOf, keysAbove, type PathOptions } from '../../src/agents/paths.ts'
import { Place } from '../setup/server-process.ts'

const place = new Place()
let root: string
const at = (...path: string[]) => join(root, ...path)
const key = (path: string, options: PathOptions) => keyOf(filePath(path, options))

function git(folder: string, ...args: string[]): void {
  const who = ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'protocol.file.allow=always']
  execFileSync('git', [...who, ...args], { cwd: folder, stdio: 'ignore' })
}

// shop with a worktree, a link to it, a submodule, and beside it lib and a folder without git.
beforeAll(async () => {
  root = await realpath(await place.folder())
  for (const name of ['shop', 'lib']) {
    await mkdir(at(name, 'src'), { recursive: true })
    await writeFile(at(name, 'src', 'a.ts'), '')
    git(at(name), 'init', '-q')
    git(at(name), 'add', '.')
    git(at(name), 'commit', '-qm', 'first')
  }
  git(at('shop'), 'submodule', 'add', '-q', at('lib'), 'vendor')
  git(at('shop'), 'worktree', 'add', '-q', at('tree'))
  await symlink(at('shop'), at('link'))
  await symlink(at('shop', 'src', 'a.ts'), at('shop', 'alias.ts'))
  await symlink(at('shop', 'src'), at('shop', 'source'))
  await mkdir(at('plain'))
}, 60_000)
afterAll(() => place.clean())

describe('a file', () => {
  it('has one key, however it is named', () => {
    const own = key('src/a.ts', { folder: at('shop') })
    expect(own).toMatch(/^repo\/shop-[0-9a-f]{8}\/src\/a\.ts$/)
    const names: [string, string][] = [
      [at('shop', 'src', 'a.ts'), at('plain')],
      ['./src/../src//a.ts', at('shop')],
      ['a.ts', at('shop', 'src')],
      ['../../shop/src/a.ts', at('lib', 'src')],
      ['src/a.ts', at('link')],
      ['alias.ts', at('shop')],
      ['src/a.ts', at('tree')],
      [at('tree', 'src', 'a.ts'), at('shop')],
    ]
    for (const [path, folder] of names) expect(key(path, { folder })).toBe(own)
  })

  it('that does not exist yet counts in the folder where it will be', () => {
    const own = key('new/deep/b.ts', { folder: at('shop') })
    expect(own).toMatch(/^repo\/shop-[0-9a-f]{8}\/new\/deep\/b\.ts$/)
    expect(key('new/deep/b.ts', { folder: at('link') })).toBe(own)
    expect(key('new/deep/b.ts', { folder: at('tree') })).toBe(own)
    const folder = at('shop')
    expect(key('source/new/b.ts', { folder })).toBe(key('src/new/b.ts', { folder }))
  })

  it('of another repository or none is not one of this', () => {
    const folder = at('shop')
    expect(key('../lib/src/a.ts', { folder })).toBe(key('src/a.ts', { folder: at('lib') }))
    expect(key('vendor/src/a.ts', { folder })).toMatch(/^repo\/vendor-[0-9a-f]{8}\/src\/a\.ts$/)
    expect(key('../plain/c', { folder })).toBe(`repo/-${at('plain', 'c')}`)
  })

  it('has the name of its repository only in that repository', () => {
    const [folder, repository] = [at('shop'), 'our-shop']
    const named = { folder, repository }
    expect(key('src/a.ts', named)).toBe('repo/our-shop/src/a.ts')
    expect(key(at('tree', 'src/a.ts'), named)).toBe('repo/our-shop/src/a.ts')
    expect(key('../lib/src/a.ts', named)).toBe(key('../lib/src/a.ts', { folder }))
    expect(key('../plain/c', named)).toBe(key('../plain/c', { folder }))
    expect(key('c', { folder: at('plain'), repository })).toBe(`repo/our-shop${at('plain', 'c')}`)
  })

  it('with a long or broken name has a key of its own', () => {
    const long = (end: string) => key(`${'x/'.repeat(300)}${end}`, { folder: at('shop') })
    expect(long('a').length).toBeLessThanOrEqual(512)
    expect(long('a')).not.toBe(long('b'))
    expect(key('\ud800', { folder: at('shop') }).isWellFormed()).toBe(true)
  })
})

describe('the claims for paths', () => {
  const file = (path: string) => ({ repository: 'repo/r', path })

  it('are shared on the folders above, so that a folder and its files exclude each other', () => {
    expect(keysAbove(file(''))).toEqual([])
    expect(keysAbove(file('src/a.ts'))).toEqual(['repo/r', 'repo/r/src'])
    expect(claimsFor([file('src/a.ts')], 'exclusive')).toEqual([
      { key: 'repo/r', mode: 'shared' },
      { key: 'repo/r/src', mode: 'shared' },
      { key: 'repo/r/src/a.ts', mode: 'exclusive' },
    ])
    expect(claimsFor([file('')], 'exclusive')).toEqual([{ key: 'repo/r', mode: 'exclusive' }])
  })

  it('take a folder and a file in it together, in any order', () => {
    const claims = [
      { key: 'repo/r', mode: 'shared' },
      { key: 'repo/r/src', mode: 'exclusive' },
      { key: 'repo/r/src/a.ts', mode: 'exclusive' },
    ]
    for (const paths of [
      ['src/a.ts', 'src'],
      ['src', 'src/a.ts'],
    ]) {
      expect(claimsFor(paths.map(file), 'exclusive')).toEqual(claims)
    }
  })
})
