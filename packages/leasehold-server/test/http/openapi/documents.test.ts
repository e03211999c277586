import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { Scene } from '../scene.ts'

/**
 * The curl commands of the documents run unchanged, with a real curl against a new server, and must
 * print the block after them.
 */
const ROOT = fileURLToPath(new URL('../../../../../', import.meta.url))
const hasCurl = spawnSync('curl', ['--version']).status === 0
const MARK = '=== next block ==='

interface Block {
  readonly commands: string
  readonly output: string
}

function blocksOf(text: string): Block[] {
  const found = text.matchAll(/^```sh curl\n(.*?)^```$\n*^```(?:json|text)\n(.*?)^```$/gms)
  return [...found].map(([, commands, output]) => ({ commands: commands!, output: output! }))
}

/** Runs all blocks in one shell, so that later ones can use variables of earlier ones. */
async function outputsOf(blocks: readonly Block[], url: string): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'leasehold-curl-'))
  const script = blocks
    .map(({ commands }) => commands)
    .join(`\necho '${MARK}'\n`)
    .replaceAll('http://127.0.0.1:7420', url)
  try {
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: folder })
    return stdout.split(`${MARK}\n`)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Equal, except for times and for what the document shortens with an ellipsis. */
function expectLike(actual: unknown, shown: unknown, where: string): void {
  if (typeof shown === 'string' && shown.includes('…')) {
    expect(actual, where).toEqual(expect.stringContaining(shown.split('…')[0]!))
  } else if (typeof shown === 'number' && shown > 1e12) {
    expect(actual, where).toBeGreaterThan(1e12)
  } else if (typeof shown === 'object' && shown !== null) {
    const [own, other] = [actual as Record<string, unknown>, shown as Record<string, unknown>]
    expect(Object.keys(own ?? {}), where).toEqual(Object.keys(other))
    for (const name of Object.keys(other)) expectLike(own[name], other[name], `${where}.${name}`)
  } else expect(actual, where).toEqual(shown)
}

function read(line: string): unknown {
  return line.startsWith('{') ? JSON.parse(line) : line
}

// Debian's images have curl; if it is missing, other tests make the same requests with fetch.
describe.skipIf(!hasCurl)('the curl commands', () => {
  it('of docs/http.md print the shown output', async () => {
    const text = await readFile(join(ROOT, 'docs/http.md'), 'utf8')
    const blocks = blocksOf(text)
    expect(blocks.length).toBeGreaterThanOrEqual(8)
    expect(text.split('```sh curl').length - 1, 'each has its output').toBe(blocks.length)
    const scene = await Scene.open({ http: { heartbeat: 50 } })
    const outputs = await outputsOf(blocks, scene.server.url).finally(() => scene.close())
    for (const [at, { commands, output }] of blocks.entries()) {
      const shown = output.trimEnd().split('\n')
      const printed = outputs[at]!.trimEnd().split('\n')
      expect(printed.length, commands).toBe(shown.length)
      for (const [line, one] of shown.entries()) {
        expectLike(read(printed[line]!), one.endsWith('…') ? one : read(one), commands)
      }
    }
  })
})

it('the dashboard is served beside the API', async () => {
  const scene = await Scene.open()
  const page = await scene.ask('GET /')
  expect([page.status, page.type]).toEqual([200, 'text/html; charset=utf-8'])
  const [, script] = /src="(\/dashboard\/[^"]+\.js)"/.exec(page.body) ?? []
  expect((await scene.ask(`GET ${script}`)).status).toBe(200)
  await scene.close()
})
