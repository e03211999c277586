import { copyFile, mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runLeasehold } from '../setup/run-leasehold.ts'

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url))
const BUNDLE = join(PACKAGE, 'dist/bundle')

/** The files that are loaded before a command runs. */
async function filesLoadedAtStart(): Promise<Map<string, string>> {
  const files = new Map<string, string>()
  const visit = async (name: string) => {
    if (files.has(name)) return
    const text = await readFile(join(BUNDLE, name), 'utf8')
    files.set(name, text)
    const imports = text.matchAll(/\bimport(?:[^'"()]*?from)?\s*["']\.\/([^'"]+)["']/g)
    for (const [, next] of imports) await visit(next!)
  }
  await visit('main.js')
  return files
}

describe('the bundle of the command line', () => {
  it('loads neither the HTTP framework nor the recipes nor a store on disk before a command runs', async () => {
    const text = [...(await filesLoadedAtStart()).values()].join('\n')
    expect(text).toContain('Show the holders of a key')
    for (const later of ['FST_ERR_', 'class Leasehold{', 'fdatasync']) {
      expect(text).not.toContain(later)
    }
  })

  it('contains the licences of the packages in it', async () => {
    const text = await readFile(join(BUNDLE, 'LICENSES.txt'), 'utf8')
    for (const name of ['commander', 'fastify', 'pino', 'ws']) expect(text).toContain(`${name} `)
    expect(text).toContain('Permission is hereby granted')
  })
})

describe('which build the command line runs', () => {
  let root: string
  const file = (name: string) => join(root, 'packages', name)
  const write = async (name: string, text: string, second: number) => {
    await mkdir(dirname(file(name)), { recursive: true })
    await writeFile(file(name), text)
    await utimes(file(name), second, second)
  }
  const run = () => runLeasehold([], { bin: file('leasehold-server/bin/leasehold.js') })

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'leasehold-builds-'))
    await write('leasehold-server/package.json', '{ "type": "module" }', 1)
    await mkdir(file('leasehold-server/bin'))
    for (const name of ['leasehold.js', 'load.js']) {
      await copyFile(join(PACKAGE, 'bin', name), file(`leasehold-server/bin/${name}`))
    }
  })

  afterEach(() => rm(root, { recursive: true, force: true }))

  const compiled = () => write('leasehold-server/dist/main.js', 'console.log("compiled")', 100)
  const bundle = (second: number) =>
    write('leasehold-server/dist/bundle/main.js', 'console.log("bundle")', second)

  it('is the bundle, in an installed package', async () => {
    await compiled()
    await bundle(50)
    expect(await run()).toMatchObject({ code: 0, stdout: 'bundle\n' })
  })

  it('is the bundle, in a clone that was built', async () => {
    await compiled()
    await write('leasehold-server/dist/.tsbuildinfo', '', 100)
    await write('leasehold/dist/.tsbuildinfo', '', 100)
    await bundle(101)
    expect(await run()).toMatchObject({ code: 0, stdout: 'bundle\n' })
  })

  it.each(['leasehold-server', 'leasehold'])('is not a bundle older than %s', async (name) => {
    await compiled()
    await bundle(101)
    await write(`${name}/dist/.tsbuildinfo`, '', 102)
    expect(await run()).toMatchObject({ code: 0, stdout: 'compiled\n' })
  })

  it('is what the compiler wrote, without a bundle', async () => {
    await compiled()
    expect(await run()).toMatchObject({ code: 0, stdout: 'compiled\n' })
  })
})
