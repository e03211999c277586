import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Leasehold } from 'leasehold'
import { remoteStore } from 'leasehold/remote'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runLeasehold, startLeasehold } from '../setup/run-leasehold.ts'
import { Place, type ServerProcess } from '../setup/server-process.ts'

const place = new Place()
afterAll(() => place.clean())

/** Prints the time every few milliseconds, despite all signals except KILL. */
const STUBBORN = `
  const { appendFileSync } = require('node:fs')
  const write = (name) => appendFileSync(name, String(Date.now()) + '\\n')
  process.on('SIGTERM', () => write(process.argv[1] + '.term'))
  setInterval(() => write(process.argv[1]), 5)
  console.log('running')`

/** The last time that was written down whole. */
function lastTimeIn(file: string): number {
  return Number(readFileSync(file, 'utf8').split('\n').at(-2))
}

describe('leasehold lock', () => {
  let server: ServerProcess
  let env: Record<string, string>
  beforeAll(async () => {
    server = await place.server('memory:')
    env = { LEASEHOLD_URL: server.url }
  })

  const lock = (...args: string[]) => runLeasehold(['lock', ...args], { env })

  it('runs a command while it holds, with the token, and answers with its exit code', async () => {
    const script = 'echo $LEASEHOLD_KEY $LEASEHOLD_TOKEN; exit 7'
    const first = await lock('a', 'b', '--', 'sh', '-c', script)
    expect(first.code).toBe(7)
    const second = await lock('a', '--', 'sh', '-c', script)
    const [one, two] = [first, second].map(({ stdout }) => /^a (\d+)\n$/.exec(stdout)?.[1])
    expect(Number(two)).toBeGreaterThan(Number(one))
    expect(first.stderr).toBe('')
  })

  it('leaves options behind -- to the command', async () => {
    const { stdout, code } = await lock('a', '--', 'echo', '--help', '--', '--wait')
    expect([stdout, code]).toEqual(['--help -- --wait\n', 0])
  })

  it('ends with 124 if it is not acquired in time, and names the holder', async () => {
    const leasehold = await Leasehold.open(server.url, { holder: 'alice' })
    await using _held = await leasehold.lock('busy', { ttl: '60s' })
    for (const wait of ['0', '50ms']) {
      const ran = await lock('busy', '--wait', wait, '--', 'echo', 'never')
      expect(ran).toMatchObject({ code: 124, stdout: '' })
      expect(ran.stderr).toMatch(/busy.*alice/)
    }
    await leasehold.close()
  })

  it('holds beside others that are shared', async () => {
    const leasehold = await Leasehold.open(server.url)
    await using _held = await leasehold.lock('s', { mode: 'shared', ttl: '60s' })
    expect((await lock('--shared', 's', '--wait', '0', '--', 'true')).code).toBe(0)
    expect((await lock('s', '--wait', '0', '--', 'true')).code).toBe(124)
    await leasehold.close()
  })

  it.each<[string, string[], number, RegExp]>([
    ['a command that is not there', ['a', '--', 'no-such-command'], 127, /was not found/],
    ['a command that cannot be executed', ['a', '--', '/'], 126, /is not executable/],
    ['no command', ['a'], 125, /after '--'/],
    ['no key', ['--', 'true'], 125, /missing required argument 'key'/],
    ['an unknown option', ['a', '--tll', '5s', '--', 'true'], 125, /unknown option '--tll'/],
    ['an invalid ttl', ['a', '--ttl', 'soon', '--', 'true'], 125, /ttl is "soon"/],
    [
      'a ttl that leaves no time',
      ['a', '--ttl', '1s', '--kill-after', '2s', '--', 'true'],
      125,
      /--ttl is 1s and --kill-after is 2s: the ttl must be finite and longer/,
    ],
    [
      'a ttl that is too short',
      ['a', '--ttl', '12ms', '--', 'true'],
      125,
      /^leasehold: --ttl is 12ms, with --kill-after 4ms included; .* Use --ttl 15ms or more\n$/,
    ],
    [
      'a ttl that is hardly any',
      ['a', '--ttl', '1ms', '--', 'true'],
      125,
      /^leasehold: --ttl is 1ms, .* Use --ttl 15ms or more\n$/,
    ],
    [
      'a ttl that is too short for its kill-after',
      ['a', '--ttl', '20ms', '--kill-after', '15ms', '--', 'true'],
      125,
      /^leasehold: --ttl is 20ms, with --kill-after 15ms included; .* Use --ttl 25ms or more\n$/,
    ],
    [
      'a ttl that is too long',
      ['a', '--ttl', '4000d', '--', 'true'],
      125,
      /^leasehold: --ttl is 4000d, .* Use --ttl \d+d or less\n$/,
    ],
    ['an invalid limit', ['a', '--shared', '--limit', 'x', '--', 'true'], 125, /--limit is "x"/],
    ['a command that a signal ends', ['a', '--', 'sh', '-c', 'kill -9 $$'], 137, /^$/],
  ])('ends for %s with its own code', async (_name, args, code, message) => {
    const ran = await lock(...args)
    expect(ran.stderr).toMatch(message)
    expect(ran.code).toBe(code)
  })

  it('passes on the signal that stops it, and releases when the command has ended', async () => {
    // The sleep must not keep the output pipe open, because it outlives the command.
    const script = 'trap "echo cleaned; exit 3" TERM; echo in; sleep 60 > /dev/null 2>&1 & wait'
    const running = startLeasehold(['lock', 'passed', '--', 'sh', '-c', script], { env })
    await running.printed(/in\n/)
    running.child.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ code: 3, stdout: 'in\ncleaned\n' })
    expect((await lock('passed', '--wait', '0', '--', 'true')).code).toBe(0)
  })

  it('stops waiting on a signal, and leaves no claim', async () => {
    const leasehold = await Leasehold.open(server.url)
    const held = await leasehold.lock('line', { ttl: '60s' })
    const running = startLeasehold(['lock', 'line', '--', 'echo', 'never'], { env })
    const store = await remoteStore(server.url)
    const count = async () => (await store.read({ key: 'line' })).count
    await expect.poll(count, { timeout: 20_000 }).toBe(2)
    running.child.kill('SIGINT')
    expect(await running.ended).toMatchObject({ code: 130, stdout: '' })
    await expect.poll(count).toBe(1)
    await held.release()
    await store.close()
    await leasehold.close()
  })

  it('ends the command when its lock is revoked, with TERM and then KILL', async () => {
    const file = join(await place.folder(), 'at')
    const running = startLeasehold(
      ['lock', 'taken', '--', process.execPath, '-e', STUBBORN, file],
      {
        env,
      },
    )
    await running.printed(/running/)
    const by = ['revoke', 'taken', '--why', 'it hangs']
    expect((await runLeasehold(by, { env })).code).toBe(0)
    const { code, stderr } = await running.ended
    expect(code).toBe(123)
    expect(stderr).toMatch(/revoked by .* by the command line.*it hangs/)
    expect(existsSync(`${file}.term`)).toBe(true)
  })

  it('gives the command its time before a break takes effect', async () => {
    const script = 'trap "echo cleaned; exit 0" TERM; echo in; sleep 60 & wait'
    const args = ['lock', 'broken', '--ttl', '30s', '--kill-after', '2s', '--', 'sh', '-c', script]
    const running = startLeasehold(args, { env })
    await running.printed(/in\n/)
    const by = ['break', 'broken', '--after', '4s', '--why', 'deploy']
    expect((await runLeasehold(by, { env })).code).toBe(0)
    const begun = performance.now()
    const { code, stdout, stderr } = await running.ended
    expect(code).toBe(123)
    expect(stdout).toBe('in\ncleaned\n')
    expect(stderr).toMatch(/broken by .*deploy/)
    // It got the signal 2 s before the end, and not at the end.
    expect(performance.now() - begun).toBeLessThan(3900)
  })
})

describe('leasehold lock with a frozen server', () => {
  it('kills the command before the ttl is over', async () => {
    const server = await place.server('memory:')
    const file = join(await place.folder(), 'at')
    const ttl = 4000
    const args = ['lock', 'k', '--ttl', `${ttl}ms`, '--kill-after', '1s', '--server', server.url]
    const running = startLeasehold([...args, '--', process.execPath, '-e', STUBBORN, file])
    await running.printed(/running/)
    // The last renewal that the server can have carried out is from before this.
    server.signal('SIGSTOP')
    const stopped = Date.now()
    const { code, stderr } = await running.ended
    server.signal('SIGCONT')
    const [last, terminated] = [lastTimeIn(file), lastTimeIn(`${file}.term`)]
    expect(code).toBe(123)
    expect(stderr).toMatch(/could not be renewed/)
    expect(last - stopped).toBeLessThan(ttl)
    expect(terminated - stopped).toBeLessThan(ttl - 1000)
    expect(last - terminated).toBeGreaterThan(500)
  })
})

describe('leasehold lock, without a server', () => {
  it('works on a folder', async () => {
    const folder = await place.folder()
    const args = [
      'lock',
      'k',
      '--store',
      `file:${folder}`,
      '--',
      'sh',
      '-c',
      'echo $LEASEHOLD_TOKEN',
    ]
    const [first, second] = [await runLeasehold(args), await runLeasehold(args)]
    expect(Number(second.stdout)).toBeGreaterThan(Number(first.stdout))
  })

  it('ends with 125 if there is no server', async () => {
    const ran = await runLeasehold([
      'lock',
      'k',
      '--server',
      'http://127.0.0.1:1',
      '--timeout',
      '200ms',
      '--',
      'true',
    ])
    expect(ran.code).toBe(125)
    expect(ran.stderr).toMatch(/no lease server was reached at http:\/\/127\.0\.0\.1:1/)
  })
})
