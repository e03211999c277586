import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createContext, runInContext } from 'node:vm'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { Served } from '../stores/served.ts'
import { ROOT, readSource } from './source-files.ts'

/** What a bundle with `Leasehold.open` had before. */
const BEFORE_BYTES = 266_000

const WITH_LOCKS = `
import { connect, withLock } from 'leasehold/client'
const client = await connect(LEASEHOLD_URL, options)
await withLock(client, 'reports', {}, (lock) => print('token ' + (lock.token > 0)))
await client.close()
`

const WITH_EVERYTHING = `
import { Leasehold } from 'leasehold'
const leasehold = await Leasehold.open(LEASEHOLD_URL, options)
const first = await leasehold.lock('reports')
const { token } = first
const second = leasehold.lock('reports', { wait: '20s' })
await first.release()
print('in turn ' + ((await second).token > token))
await leasehold.election('chief').campaign()
print('leads ' + (await leasehold.election('chief').leader()).candidate)
await leasehold.registry.register('web', { address: '10.0.0.1:80' })
print('found ' + (await leasehold.registry.find('web')).length)
await leasehold.close()
for (const url of ['file:./data', 'redis://h']) {
  await Leasehold.open(url).catch(({ code, message }) => print(code + ': ' + message))
}
`

describe('a bundle for browsers and edge workers', () => {
  let project: string
  let server: Served
  beforeAll(async () => {
    project = await realpath(await mkdtemp(join(tmpdir(), 'leasehold-bundle-')))
    await mkdir(join(project, 'node_modules'))
    await symlink(join(ROOT, 'packages/leasehold'), join(project, 'node_modules/leasehold'))
    server = await Served.on('memory:')
  })
  afterAll(async () => {
    await server?.end()
    await rm(project, { recursive: true, force: true })
  })

  /** Bundles a program as a user would, and fails if anything is missing. */
  async function bundled(program: string, platform: 'browser' | 'node'): Promise<string> {
    const { outputFiles } = await build({
      stdin: { contents: scriptOf(program), resolveDir: project },
      ...{ bundle: true, minify: true, write: false, platform, logLevel: 'silent' },
      format: platform === 'node' ? 'esm' : 'iife',
      external: ['croner', 'ioredis', 'pg', '@nats-io/transport-node'],
    })
    return outputFiles[0]!.text
  }

  /** Runs it with what browsers and edge workers have in common, and without anything of Node. */
  async function run(bundle: string): Promise<string[]> {
    const printed: string[] = []
    let done: () => void = () => {}
    const ended = new Promise<void>((resolve) => {
      done = resolve
    })
    const print = (text: string) => printed.push(text)
    const globals = {
      ...{ AbortController, AbortSignal, TextEncoder, URL, WebSocket, btoa, console, crypto },
      ...{ clearTimeout, performance, queueMicrotask, setTimeout },
      ...{ LEASEHOLD_URL: server.url, options: { holder: 'a page' }, print, done },
    }
    runInContext(bundle, createContext(globals))
    await ended
    return printed
  }

  it('with locks alone has at most 30 % of the size that open had, and little more for Node', async () => {
    const page = await bundled(WITH_LOCKS, 'browser')
    expect(page.length).toBeLessThan(0.3 * BEFORE_BYTES)
    expect(page).not.toMatch(/(from|import|require)\s*\(?["']node:/)
    // Node's has a WebSocket of our own in it.
    expect((await bundled(WITH_LOCKS, 'node')).length).toBeLessThan(0.31 * BEFORE_BYTES)
  })

  it('with locks alone runs without Node', async () => {
    expect(await run(await bundled(WITH_LOCKS, 'browser'))).toEqual(['token true'])
  })

  it('with every recipe has no other store, and runs without Node', async () => {
    const page = await bundled(WITH_EVERYTHING, 'browser')
    expect(page.length).toBeLessThan(210_000)
    const [turn, leads, found, ...refused] = await run(page)
    expect([turn, leads, found]).toEqual(['in turn true', 'leads a page', 'found 1'])
    expect(refused).toEqual([
      expect.stringMatching(/^unsupported: store "file:.\/data" cannot be opened in a bundle for/),
      expect.stringMatching(/^unsupported: store "redis:\/\/h" cannot be opened in a bundle for/),
    ])
  })

  it('replaces files that are there by files with the same exports', async () => {
    const { browser } = JSON.parse(readSource('packages/leasehold/package.json').text)
    expect(Object.keys(browser).length).toBeGreaterThan(2)
    for (const [from, to] of Object.entries(browser as Record<string, string>)) {
      const [there, instead] = await Promise.all(
        [from, to].map((path) => import(join(ROOT, 'packages/leasehold', path))),
      )
      expect(existsSync(join(ROOT, 'packages/leasehold', to))).toBe(true)
      expect(Object.keys(instead).sort(), to).toEqual(Object.keys(there).sort())
    }
  })
})

/** The program with all but its imports in a function, because a script has no await at its top. */
function scriptOf(program: string): string {
  const imports = program.match(/^import .*$/gm)!.join('\n')
  const rest = program.replace(/^import .*$/gm, '')
  return `${imports}
void (async () => {
  try {${rest}} catch (error) { print(String(error.stack)) }
  done()
})()`
}
