import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Leasehold } from '../../src/index.ts'
import { CONSUL, describeWith, Engine, type EngineSpec, ETCD, REDIS } from '../engines/index.ts'
import { runNode } from './commands.ts'
import { filesUnder, lineAt, ROOT, readSource, type SourceFile } from './source-files.ts'

/**
 * Every program in the documents is run. A block marked \`\`\`ts run is a whole program: it is
 * type-checked and run. A block marked \`\`\`js run is run as CommonJS. Either must print the next
 * block, which is marked \`\`\`text. The documents show no other code.
 *
 * One mark is for the pages of other libraries: a block marked \`\`\`ts run redis, \`\`\`ts run etcd or
 * \`\`\`ts run consul runs against a real one.
 */
interface Block {
  readonly path: string
  readonly line: number
  /** Everything after the three ticks. */
  readonly info: string
  readonly text: string
}

function blocksOf({ path, text }: SourceFile): Block[] {
  const found = text.matchAll(/^```(\S[^\n]*)\n(.*?)^```$/gms)
  return [...found].map((match) => ({
    path,
    line: lineAt(text, match.index),
    info: match[1]!,
    text: match[2]!,
  }))
}

const MARK = /^(ts|js) run(?: (redis|etcd|consul))?$/

/** The engines of programs, and the variable that says where one is. */
const ENGINES = {
  redis: { spec: REDIS, variable: 'REDIS_URL', scheme: 'redis' },
  etcd: { spec: ETCD, variable: 'ETCD_URL', scheme: 'http' },
  consul: { spec: CONSUL, variable: 'CONSUL_URL', scheme: 'http' },
} as const satisfies Record<string, { spec: EngineSpec; variable: string; scheme: string }>

interface Program {
  readonly name: string
  readonly language: 'ts' | 'js'
  readonly engine: keyof typeof ENGINES | undefined
  readonly code: string
  readonly output: string | undefined
}

function programsOf(blocks: readonly Block[]): Program[] {
  return blocks.flatMap((block, index) => {
    const [, language, engine] = MARK.exec(block.info) ?? []
    if (language === undefined) return []
    const next = blocks[index + 1]
    const output = next?.path === block.path && next.info === 'text' ? next.text : undefined
    const name = `${block.path}:${block.line}`
    return [{ name, language, engine, code: block.text, output } as Program]
  })
}

const documents = [...filesUnder('docs', /\.md$/), ...filesAtTheTop()]
const blocks = documents.flatMap(blocksOf)
const programs = programsOf(blocks)

function filesAtTheTop(): SourceFile[] {
  return filesUnder('.', /\.md$/).filter((file) => !file.path.includes('/'))
}

describe('the programs in the documents', () => {
  let folder: string
  let compiled = ''

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), 'leasehold-documents-')))
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
    for (const [index, { code, language }] of programs.entries()) {
      const ending = language === 'ts' ? 'ts' : 'cjs'
      await writeFile(join(folder, `program-${index}.${ending}`), code)
    }
    const { compilerOptions } = JSON.parse(readSource('tsconfig.base.json').text)
    const config = {
      compilerOptions: {
        ...compilerOptions,
        ...{ composite: false, declaration: false, outDir: 'out' },
        // Its package.json hides its types from modules.
        paths: { redlock: ['./node_modules/redlock/dist/index.d.ts'] },
      },
      include: ['program-*.ts'],
    }
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config))
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    compiled = (await runNode([tsc, '--project', '.'], folder)).stdout
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  it('are there, and have the right types', () => {
    expect(programs.length).toBeGreaterThan(0)
    expect(compiled).toBe('')
  })

  async function prints({ name, language, output }: Program, env: Record<string, string> = {}) {
    expect(output, `a block \`\`\`text follows ${name}`).toBeDefined()
    const index = programs.findIndex((program) => program.name === name)
    const place = join(folder, `place-${index}`)
    await mkdir(place)
    const file = language === 'ts' ? `out/program-${index}.js` : `program-${index}.cjs`
    const ran = await runNode([join(folder, file)], place, undefined, env)
    expect(ran.stderr).toBe('')
    expect(ran.stdout).toBe(output)
    expect(ran.code).toBe(0)
  }

  const runnable = programs.filter(({ engine }) => engine === undefined)
  it.each(runnable)('$name prints the shown output', (program) => prints(program))

  for (const [name, { spec, variable, scheme }] of Object.entries(ENGINES)) {
    describeWith(spec, `with a real ${name}`, () => {
      let engine: Engine
      beforeAll(async () => {
        engine = await Engine.start(spec)
      })
      afterAll(() => engine?.stop())

      const those = programs.filter((program) => program.engine === name)
      it.each(those)('$name prints the shown output', (program) =>
        prints(program, { [variable]: `${scheme}://127.0.0.1:${engine.port}` }),
      )
    })
  }
})

describe('the documents', () => {
  const CODE = /^(ts|js|typescript|javascript|tsx|jsx|mjs)\b/

  it('show no code that is not run', () => {
    const unrun = blocks.filter(({ info }) => CODE.test(info) && !MARK.test(info))
    expect(unrun.map(({ path, line, info }) => `${path}:${line} ${info}`)).toEqual([])
  })

  it('show no command that does not exist', () => {
    const { scripts } = JSON.parse(readSource('package.json').text) as {
      scripts: Record<string, string>
    }
    const faults = blocks
      .filter(({ info }) => info === 'sh')
      .flatMap(({ path, line, text }) =>
        commandsOf(text)
          .filter((command) => !exists(command, scripts))
          .map((command) => `${path}:${line} ${command}`),
      )
    expect(faults).toEqual([])
  })

  it('name only source files that exist', () => {
    const sources = filesUnder('.', /\.(tsx?|js)$/).map(({ path }) => `/${path}`)
    const named = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/`([\w.-]+\/[\w./-]*\.(?:tsx?|js))`/g)].map(([, name]) => ({ path, name })),
    )
    expect(named.length).toBeGreaterThan(20)
    expect(named.filter(({ name }) => !sources.some((each) => each.endsWith(`/${name}`)))).toEqual(
      [],
    )
  })

  it('link only to files and headings that exist', () => {
    const broken = documents.flatMap(({ path, text }) =>
      [...text.matchAll(/\]\(([^)\s]+)\)/g)]
        .map((match) => match[1]!)
        .filter((link) => !/^https?:/.test(link))
        .filter((link) => !leadsSomewhere(path, link))
        .map((link) => `${path} links to ${link}`),
    )
    expect(broken).toEqual([])
  })
})

function leadsSomewhere(path: string, link: string): boolean {
  const [file = '', heading] = link.split('#')
  const target = file === '' ? path : join(dirname(path), file)
  if (!existsSync(join(ROOT, target))) return false
  return heading === undefined || anchorsOf(readSource(target).text).has(heading)
}

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(text: string): Set<string> {
  const headings = text.replace(/^```.*?^```$/gms, '').match(/^#+ .*$/gm) ?? []
  return new Set(
    headings.map((heading) =>
      heading
        .replace(/^#+ /, '')
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

/** Without comments, one by one. */
function commandsOf(text: string): string[] {
  return text
    .split('\n')
    .flatMap((line) => line.replace(/(^|\s)#.*/, '').split('&&'))
    .map((command) => command.trim())
    .filter((command) => command !== '')
}

function exists(command: string, scripts: Record<string, string>): boolean {
  const [program, first = '', second = ''] = command.split(/\s+/)
  if (program !== 'npm') return program !== undefined && existsSync(join(ROOT, program))
  if (first === 'ci' || first === 'install') return true
  return Object.hasOwn(scripts, first === 'run' ? second : first)
}

describe('the readme', () => {
  const readme = readSource('README.md')

  it('opens with how to install it, and with the two commands of this repository', () => {
    const opening = readme.text.split(/^## /m)[0]!
    const commands = blocksOf({ path: 'README.md', text: opening })
      .filter(({ info }) => info === 'sh')
      .flatMap(({ text }) => commandsOf(text))
    expect(commands).toEqual([
      'npm install leasehold',
      'npm install leasehold-server',
      'npm ci',
      'npm start',
      'npm ci',
      'npm test',
    ])
    const { engines } = JSON.parse(readSource('packages/leasehold/package.json').text)
    expect(engines.node).toBe('^20.19 || >=22.12')
    expect(opening).toContain('Node 20.19+ or 22.12+')
  })

  it('has fewer than 700 words', () => {
    expect(readme.text.trim().split(/\s+/).length).toBeLessThan(700)
  })

  it('shows the commands of the continuous integration', () => {
    const lines = readSource('.ci/run').text.split('\n')
    expect(lines).toContain("retry 'npm ci' npm ci")
    expect(lines).toContain('npm test')
  })
})

describe('the page of guarantees', () => {
  const page = readSource('docs/guarantees.md')

  it('agrees with the guarantees of the stores', async () => {
    const memory = await Leasehold.open('memory:')
    const folder = await mkdtemp(join(tmpdir(), 'leasehold-guarantees-'))
    const file = await Leasehold.open(`file:${folder}`)
    const promised = [memory.guarantees, file.guarantees]
    await Promise.all([memory.close(), file.close()])
    await rm(folder, { recursive: true })
    const row = (begins: string) =>
      page.text
        .split('\n')
        .find((line) => line.startsWith(`| ${begins}`))
        ?.split('|')
        .slice(2, 4)
        .map((cell) => cell.trim())
    expect(row('How late an expiry')).toEqual(promised.map((it) => `${it.expiryLateness} ms`))
    expect(row('Shortest ttl')).toEqual(promised.map((it) => `${it.ttl.min} ms`))
    expect(promised.map((it) => it.durability)).toEqual(['process', 'disk'])
    expect(promised.map((it) => it.tokensSurvive)).toEqual(['process', 'restart'])
  })
})

describe('the index of the documents', () => {
  it('names every page', () => {
    const index = readSource('docs/README.md').text
    const decisions = readSource('docs/decisions/README.md').text
    const missing = filesUnder('docs', /\.md$/).filter(({ path }) => {
      const [, folder, name] = /^docs\/(decisions\/)?(.*)$/.exec(path)!
      if (name === 'README.md') return false
      return !(folder ? decisions : index).includes(`](${name})`)
    })
    expect(missing.map(({ path }) => path)).toEqual([])
  })
})

describe('the rules for documents', () => {
  it('see a link to a file or heading that is missing', () => {
    expect(leadsSomewhere('docs/README.md', 'guarantees.md')).toBe(true)
    expect(leadsSomewhere('docs/README.md', 'guaranties.md')).toBe(false)
    expect(leadsSomewhere('docs/README.md', 'guarantees.md#three-outcomes')).toBe(true)
    expect(leadsSomewhere('docs/README.md', 'guarantees.md#four-outcomes')).toBe(false)
    expect(anchorsOf('## `grace`: two deadlines\n')).toEqual(new Set(['grace-two-deadlines']))
  })

  it('see an unknown command', () => {
    const scripts = { test: '' }
    expect(commandsOf('npm ci && npm test # both\n')).toEqual(['npm ci', 'npm test'])
    expect(exists('npm test', scripts)).toBe(true)
    expect(exists('npm run test', scripts)).toBe(true)
    expect(exists('npm run tset', scripts)).toBe(false)
    expect(exists('npm tset', scripts)).toBe(false)
    expect(exists('.ci/run', scripts)).toBe(true)
    expect(exists('.ci/walk', scripts)).toBe(false)
  })

  it('see a program and its output', () => {
    const text = '```ts run\na()\n```\n\nprints\n\n```text\nb\n```\n\n```ts run redis\nc()\n```\n'
    const found = programsOf(blocksOf({ path: 'a.md', text }))
    expect(found).toEqual([
      { name: 'a.md:1', language: 'ts', engine: undefined, code: 'a()\n', output: 'b\n' },
      { name: 'a.md:11', language: 'ts', engine: 'redis', code: 'c()\n', output: undefined },
    ])
  })
})
