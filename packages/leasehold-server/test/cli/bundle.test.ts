import { createHash } from 'node:crypto'
import {
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { crc32 } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runLeasehold } from '../setup/run-leasehold.ts'

const PACKAGE = fileURLToPath(new URL('../..', import.meta.url))
const BUNDLE = join(PACKAGE, 'dist/bundle')

/** The modules in the bundle that a command runs, by the names that esbuild gives them. */
async function modulesRunBy(...args: readonly string[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'leasehold-coverage-'))
  try {
    await runLeasehold(args, { env: { NODE_V8_COVERAGE: folder } })
    const [name] = await readdir(folder)
    const { result } = JSON.parse(await readFile(join(folder, name!), 'utf8')) as Coverage
    const functions = result.filter(({ url }) => url.includes('/dist/bundle/'))
    return functions
      .flatMap((script) => script.functions)
      .filter(({ functionName, ranges }) => /\.m?js$/.test(functionName) && ranges[0]!.count > 0)
      .map(({ functionName }) => functionName)
  } finally {
    await rm(folder, { recursive: true })
  }
}

interface Coverage {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly {
      readonly functionName: string
      readonly ranges: readonly { readonly count: number }[]
    }[]
  }[]
}

describe('the bundle of the command line', () => {
  it.each([['--version'], ['get']])(
    'runs neither the HTTP framework nor the recipes nor a store on disk for %s',
    async (...args) => {
      const modules = await modulesRunBy(...args)
      expect(modules).toContain('node_modules/commander/lib/command.js')
      for (const later of ['/fastify/', 'dist/leasehold.js', 'stores/file/']) {
        expect(modules.filter((name) => name.includes(later))).toEqual([])
      }
    },
  )

  it('runs the HTTP framework for a server', async () => {
    const modules = await modulesRunBy('serve', '--store', 'file:')
    expect(modules).toContain('node_modules/fastify/fastify.js')
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
  const run = (...args: string[]) =>
    runLeasehold(args, { bin: file('leasehold-server/bin/leasehold.js') })

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'leasehold-builds-'))
    await write('leasehold-server/package.json', '{ "type": "module" }', 1)
    await mkdir(file('leasehold-server/bin'))
    for (const name of ['leasehold.js', 'load.js', 'load-bundle.js', 'package.json']) {
      await copyFile(join(PACKAGE, 'bin', name), file(`leasehold-server/bin/${name}`))
    }
  })

  afterEach(() => rm(root, { recursive: true, force: true }))

  const compiled = () =>
    write('leasehold-server/dist/main.js', 'export const run = () => console.log("compiled")', 100)
  const bundle = (second: number) =>
    write('leasehold-server/dist/bundle/main.cjs', bundled('console.log("bundle")'), second)

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

  describe('and the code that V8 compiled for it', () => {
    const folder = () => file('leasehold-server/dist/bundle')
    const kept = async () =>
      (await readdir(join(folder(), 'cache'))).map((name) => join(folder(), 'cache', name))
    // The constant is in the compiled code: a run of old code prints the old one.
    const answer = (code: string) =>
      write('leasehold-server/dist/bundle/commands.cjs', bundled(code), 50)
    const PRINT = "console.log('answer', process.argv[2], new Error().stack.length > 0)"

    it('is kept for each command that succeeds, and used', async () => {
      await answer(PRINT)
      const first = await run('get')
      expect(first).toMatchObject({ code: 0, stdout: 'answer get true\n', stderr: '' })
      expect(await kept()).toHaveLength(1)
      expect(await run('get')).toEqual(first)
      await run('ls')
      expect(await kept()).toHaveLength(2)
      await answer('process.exit(2)')
      expect(await run('lss')).toMatchObject({ code: 2 })
      expect(await kept()).toHaveLength(2)
    })

    it('is not used for another build of the same length', async () => {
      await answer("console.log('one')")
      await run('get')
      await answer("console.log('two')")
      expect(await run('get')).toMatchObject({ code: 0, stdout: 'two\n' })
    })

    it.each([
      ['damaged', (bytes: Buffer) => bytes.fill(0x5a, bytes.length / 2, bytes.length / 2 + 64)],
      ['cut', (bytes: Buffer) => bytes.subarray(0, bytes.length - 100)],
      ['empty', () => Buffer.alloc(0)],
      [
        'of another version of V8',
        (bytes: Buffer) => withChecksum(Buffer.alloc(bytes.length - 4, 1)),
      ],
    ])('is replaced if it is %s', async (_how, changed) => {
      await answer(PRINT)
      const first = await run('get')
      const [name] = await kept()
      const before = await readFile(name!)
      await writeFile(name!, changed(Buffer.from(before)))
      expect(await run('get')).toEqual(first)
      expect((await readFile(name!)).length).toBe(before.length)
      expect(await run('get')).toEqual(first)
    })

    it('is not kept if its folder cannot be written, and the command runs', async () => {
      await answer(PRINT)
      // Not even the administrator can create a folder where a file is.
      await writeFile(join(folder(), 'cache'), '')
      expect(await run('get')).toMatchObject({ code: 0, stdout: 'answer get true\n', stderr: '' })
    })
  })
})

/** A bundle as scripts/build-bundle.js writes it. */
function bundled(code: string): string {
  const whole = `exports.run = () => { ${code} }\n`
  return `${whole}//${createHash('sha256').update(whole).digest('hex')}\n`
}

function withChecksum(code: Buffer): Buffer {
  const checksum = Buffer.alloc(4)
  checksum.writeUInt32LE(crc32(code))
  return Buffer.concat([code, checksum])
}
