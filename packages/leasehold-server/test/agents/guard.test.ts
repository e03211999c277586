import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LeaseholdGuard } from '../../bin/opencode-guard.mjs'
import { editedPaths } from '../../src/agents/guard/edited-paths.ts'
import { ancestorsOf, isLauncher } from '../../src/agents/guard/processes.ts'
import { BIN } from '../setup/run-leasehold.ts'
import { Place, type ServerProcess } from '../setup/server-process.ts'
import { type Agent, startAgent } from './clients.ts'

const place = new Place()
let server: ServerProcess
let folder: string
let ada: Agent
beforeAll(async () => {
  server = await place.server('memory:')
  folder = await place.folder()
  execFileSync('git', ['init', '-q', folder])
  await mkdir(join(folder, 'src'))
  await writeFile(join(folder, 'src', 'a.ts'), '')
  ada = await startAgent('client 2', ['--server', server.url, '--agent', 'ada'], { cwd: folder })
}, 60_000)
afterAll(() => place.clean())

interface Ran {
  readonly code: number | null
  readonly output: string
  readonly errors: string
}

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))
const SHELL_GUARD = fileURLToPath(new URL('../../bin/leasehold-guard.sh', import.meta.url))
/** The two programs that hosts can run. The one in shell asks with curl. */
const PROGRAMS = { node: [process.execPath, BIN, 'mcp', 'guard'], shell: ['sh', SHELL_GUARD] }
let program: keyof typeof PROGRAMS = 'node'

/** Runs the guard as a host does. This process is the host of `ada`. */
async function guard(
  input: object | undefined,
  args: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<Ran> {
  const [command, ...given] = PROGRAMS[program]
  const child = spawn(command!, [...given, ...args], {
    cwd: folder,
    env: { ...process.env, LEASEHOLD_URL: server.url, ...env },
  })
  let [output, errors] = ['', '']
  child.stdout.on('data', (text) => {
    output += text
  })
  child.stderr.on('data', (text) => {
    errors += text
  })
  child.stdin.end(input === undefined ? '' : JSON.stringify(input))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output, errors }
}

const edit = (file: string) => ({
  hook_event_name: 'PreToolUse',
  cwd: folder,
  tool_name: 'Edit',
  tool_input: { file_path: join(folder, file), old_string: 'a', new_string: 'b' },
})

/** Another agent: its host is a shell, so that it is not the one of these guards. */
async function otherAgent(name: string): Promise<Agent> {
  return startAgent('sdk 1', ['--server', server.url, '--agent', name], {
    cwd: folder,
    throughShell: true,
  })
}

describe.each(['node', 'shell'] as const)('the guard of edits, in %s', (each) => {
  beforeAll(() => {
    program = each
  })

  it('denies what another agent holds, and names holder, purpose and next step', async () => {
    const bob = await otherAgent('bob')
    await bob.call('acquire', { paths: ['src'], purpose: 'move everything' })
    const { code, output } = await guard(edit('src/a.ts'))
    expect(code).toBe(0)
    const { hookSpecificOutput } = JSON.parse(output)
    expect(hookSpecificOutput).toMatchObject({
      hookEventName: 'PreToolUse',
      permissionDecision: 'deny',
    })
    const reason = hookSpecificOutput.permissionDecisionReason
    expect(reason).toMatch(/bob has .*src since .*, until .* for "move everything"/)
    expect(reason).toContain('Next: call acquire with paths')
    // With files as arguments, for hosts whose plugins run a command.
    const plain = await guard(undefined, ['src/a.ts'])
    expect(plain.code).toBe(2)
    expect(plain.errors).toContain('bob has')
    const plugin = await LeaseholdGuard({ directory: folder })
    const before = plugin['tool.execute.before']
    await expect(before({ tool: 'edit' }, { args: { filePath: 'src/a.ts' } })).rejects.toThrow(
      'bob has',
    )
    const patchText = '*** Update File: src/a.ts'
    await expect(before({ tool: 'apply_patch' }, { args: { patchText } })).rejects.toThrow()
    await before({ tool: 'read' }, { args: { filePath: 'src/a.ts' } })
    await before({ tool: 'write' }, { args: { filePath: 'README.md' } })
    await bob.close()
  }, 60_000)

  it('allows what its own agent holds, and what nobody holds', async () => {
    const { data } = await ada.call('acquire', { paths: ['src/a.ts'], purpose: 'mine' })
    expect(await guard(edit('src/a.ts'))).toEqual({ code: 0, output: '', errors: '' })
    await ada.call('release', { hold: data.hold })
    expect(await guard(edit('src/a.ts'))).toEqual({ code: 0, output: '', errors: '' })
    // For others the file of ada is taken: without a leasehold mcp beside it, a name decides.
    await ada.call('acquire', { paths: ['src/a.ts'], purpose: 'mine' })
    const env = { HOME: await place.folder() }
    expect((await guard(undefined, ['src/a.ts'], env)).code).toBe(2)
    expect((await guard(undefined, ['--agent', 'ada', 'src/a.ts'], env)).code).toBe(0)
    await ada.call('release', { all: true })
  }, 60_000)

  it('takes what is free, if asked: the agent finds it in mine', async () => {
    const { output } = await guard(edit('src/new.ts'), ['--take'])
    const { data } = await ada.call('mine')
    expect(data.holds).toMatchObject([{ state: 'held', for: ['src/new.ts'] }])
    expect(JSON.parse(output).systemMessage).toContain(data.holds[0].hold)
    expect(await guard(edit('src/new.ts'), ['--take'])).toMatchObject({ output: '' })
    expect((await ada.call('mine')).data.holds).toHaveLength(1)
    await ada.call('release', { all: true })
  }, 60_000)

  it('allows with a warning if the lease server cannot be reached', async () => {
    const env = { HOME: await place.folder(), LEASEHOLD_URL: 'http://127.0.0.1:1' }
    const { code, output } = await guard(edit('src/a.ts'), [], env)
    expect(code).toBe(0)
    expect(JSON.parse(output).systemMessage).toContain('the edit was not checked')
    expect(JSON.parse(output).hookSpecificOutput.permissionDecision).toBeUndefined()
  }, 60_000)
})

describe('the guard in shell', () => {
  beforeAll(() => {
    program = 'shell'
  })

  it('needs no Node: a copy without the rest of the package answers, too', async () => {
    const alone = join(await place.folder(), 'leasehold-guard')
    await copyFile(SHELL_GUARD, alone)
    const run = (input: object) =>
      execFileSync('sh', [alone], { input: JSON.stringify(input), encoding: 'utf8' })
    expect(run(edit('src/a.ts'))).toBe('')
    const bob = await otherAgent('bob')
    await bob.call('acquire', { paths: ['src/a.ts'], purpose: 'mine' })
    const content = 'x'.repeat(2_000_000)
    const tool_input = { file_path: join(folder, 'src/a.ts'), content }
    expect(JSON.parse(run({ cwd: folder, tool_input })).hookSpecificOutput).toMatchObject({
      permissionDecision: 'deny',
    })
    await bob.close()
  }, 60_000)

  it('allows with a warning if leasehold mcp hangs', async () => {
    process.kill(ada.pid, 'SIGSTOP')
    const { code, output } = await guard(edit('src/a.ts'))
    process.kill(ada.pid, 'SIGCONT')
    expect(code).toBe(0)
    expect(JSON.parse(output).systemMessage).toContain('leasehold mcp does not answer')
  }, 60_000)
})

describe.each(['node', 'shell'] as const)('a host with several leasehold mcp, in %s', (each) => {
  it('counts as one agent, also after one of them was killed', async () => {
    program = each
    const second = await startAgent('sdk 1', ['--server', server.url, '--agent', 'ada-2'], {
      cwd: folder,
    })
    await second.call('acquire', { paths: ['src/a.ts'], purpose: 'mine' })
    await ada.call('acquire', { paths: ['src/b.ts'], purpose: 'mine' })
    const isAllowed = async (file: string) => {
      const { code, output, errors } = await guard(edit(file))
      expect({ code, errors }).toEqual({ code: 0, errors: '' })
      return output === ''
    }
    expect(await isAllowed('src/a.ts')).toBe(true)
    expect(await isAllowed('src/b.ts')).toBe(true)
    const bob = await otherAgent('bob')
    await bob.call('acquire', { paths: ['src/c.ts'], purpose: 'his' })
    expect(await isAllowed('src/c.ts')).toBe(false)
    process.kill(second.pid, 'SIGKILL')
    expect(await isAllowed('src/b.ts')).toBe(true)
    expect(await isAllowed('src/c.ts')).toBe(false)
    await bob.close()
    await ada.call('release', { all: true })
  }, 60_000)
})

it('the guard finds the agent that its host has started by npx', async () => {
  program = 'shell'
  const file = join(folder, 'src/npx.ts')
  const agent = await startAgent('client 2', ['--server', server.url, '--agent', 'npx'], {
    program: ['npx', 'leasehold'],
    cwd: ROOT,
  })
  await agent.call('acquire', { paths: [file], purpose: 'mine' })
  expect(await guard(edit('src/npx.ts'))).toEqual({ code: 0, output: '', errors: '' })
  await agent.close()
}, 60_000)

it('tells npx and shells that run leasehold mcp from agent hosts', () => {
  const launchers = [
    'npm exec leasehold mcp',
    "sh -c 'leasehold' mcp --agent ada",
    '/bin/sh -c "leasehold" "mcp"',
    'node /x/node_modules/.bin/leasehold mcp',
    'bunx leasehold mcp',
  ]
  const hosts = ['claude -p explain leasehold mcp', '/usr/bin/codex', 'node /usr/bin/codex', 'bash']
  expect(launchers.filter((command) => !isLauncher(command))).toEqual([])
  expect(hosts.filter(isLauncher)).toEqual([])
})

it('finds an agent host that is process 1, as in a container', async () => {
  // A process whose parent has ended gets a new one: process 1, unless another process adopts it.
  const orphan = execFileSync('sh', ['-c', 'sleep 1000 >/dev/null 2>&1 & echo $!'], {
    encoding: 'utf8',
  })
  const pid = Number(orphan)
  try {
    const parents = await ancestorsOf(pid)
    expect(parents.at(-1)?.pid).toBe(1)
  } finally {
    process.kill(pid)
  }
})

it('reads the files of an edit from the input of Claude Code, Codex and opencode', () => {
  expect(editedPaths({ file_path: 'a.ts', content: '*** Add File: no.ts' })).toEqual(['a.ts'])
  expect(editedPaths({ notebook_path: 'b.ipynb' })).toEqual(['b.ipynb'])
  expect(editedPaths({ filePath: 'c.ts' })).toEqual(['c.ts'])
  const patch = '*** Begin Patch\n*** Update File: d.ts\n@@\n-x\n*** Move to: e.ts\n*** End Patch'
  expect(editedPaths({ command: patch })).toEqual(['d.ts', 'e.ts'])
  expect(editedPaths({ command: ['apply_patch', patch] })).toEqual(['d.ts', 'e.ts'])
  expect(editedPaths({ command: 'ls' })).toEqual([])
})
