import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Ran, run, runNode } from './commands.ts'
import { ROOT } from './source-files.ts'

/** A small repository with the input of the script: two packages, a changelog, and a commit. */
describe('npm run release', () => {
  let root: string

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'leasehold-release-'))
    await cp(join(ROOT, 'scripts/pack-documents.js'), join(root, 'scripts/pack-documents.js'))
    for (const name of ['README.md', 'LICENSE']) await writeFile(join(root, name), `${name}\n`)
    await writeFile(join(root, '.gitignore'), await readFile(join(ROOT, '.gitignore')))
    for (const name of ['leasehold', 'leasehold-server']) {
      await mkdir(join(root, 'packages', name), { recursive: true })
      await cp(join(ROOT, 'packages', name, 'package.json'), manifest(name))
    }
    await changelog('0.1.0, 2026-11-18')
    await run('git', ['init', '-q'], root)
    await commit()
  })

  afterEach(() => rm(root, { recursive: true, force: true }))

  const manifest = (name: string) => join(root, 'packages', name, 'package.json')
  const changelog = (heading: string) =>
    writeFile(join(root, 'CHANGELOG.md'), `# Changelog\n\n## ${heading}\n`)
  const release = (...args: string[]): Promise<Ran> => {
    const script = join(ROOT, 'scripts/release.js')
    return runNode([script, '--skip-tests', '--root', root, ...args], root)
  }

  async function commit(): Promise<void> {
    await run('git', ['add', '--all'], root)
    const author = ['-c', 'user.name=a', '-c', 'user.email=a@b']
    await run('git', [...author, 'commit', '-q', '-m', 'all'], root)
  }

  async function set(name: string, change: (manifest: Manifest) => void): Promise<void> {
    const told = JSON.parse(await readFile(manifest(name), 'utf8')) as Manifest
    change(told)
    await writeFile(manifest(name), JSON.stringify(told))
    await commit()
  }

  it('packs both packages and prints the commands to publish', async () => {
    const { code, stdout, stderr } = await release()
    expect(stderr).not.toContain('Error')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^packed leasehold-0\.1\.0\.tgz: \d+ files/m)
    expect(stdout).toContain('git tag v0.1.0 && git push origin v0.1.0')
    expect(stdout).toContain('npm publish release/leasehold-server-0.1.0.tgz --access public')
    await readFile(join(root, 'release/leasehold-0.1.0.tgz'))
  })

  it('keeps nothing in a dry run, and accepts a changelog without a date', async () => {
    await changelog('0.1.0, unreleased')
    await commit()
    const { code, stdout } = await release('--dry-run')
    expect(stdout).toContain('dry run: 0.1.0 can be released')
    expect(stdout).not.toContain('npm publish')
    expect(code).toBe(0)
    expect((await run('git', ['status', '--porcelain', '--ignored'], root)).stdout).not.toContain(
      'release/',
    )
    expect((await release()).stderr).toContain('CHANGELOG.md starts with "0.1.0, unreleased"')
  })

  it('refuses a tree with changes', async () => {
    await writeFile(join(root, 'README.md'), 'changed\n')
    const { code, stderr } = await release('--dry-run')
    expect(code).toBe(1)
    expect(stderr).toContain('not committed:\nM README.md')
  })

  it('refuses versions that differ, a changelog of another version, and a tag that exists', async () => {
    await set('leasehold', (it) => {
      it.version = '0.2.0'
    })
    await run('git', ['tag', 'v0.2.0'], root)
    const { code, stdout, stderr } = await release('--dry-run')
    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toContain('leasehold is 0.2.0 and leasehold-server is 0.1.0')
    expect(stderr).toContain('leasehold-server depends on leasehold 0.1.0: change it to 0.2.0')
    expect(stderr).toContain('CHANGELOG.md starts with "0.1.0, 2026-11-18"')
    expect(stderr).toContain('the tag v0.2.0 exists')
  })
})

interface Manifest {
  version: string
}
