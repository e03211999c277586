import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { Leasehold } from 'leasehold'
import { remoteStore } from 'leasehold/remote'
import { afterAll, describe, expect, it } from 'vitest'
import { checkRoundTrip } from '../../src/cli/admin/doctor-checks.ts'
import { BIN, runLeasehold } from '../setup/run-leasehold.ts'
import { Place } from '../setup/server-process.ts'

const place = new Place()
afterAll(() => place.clean())

const hasScript = existsSync('/usr/bin/script')
const hasBash = existsSync('/bin/bash')

describe('leasehold top', () => {
  it('prints one screen without a terminal', async () => {
    const server = await place.server('memory:')
    const leasehold = await Leasehold.open(server.url, { holder: 'alice' })
    await using _lock = await leasehold.lock('jobs/1', { ttl: '60s' })
    const { code, stdout } = await runLeasehold(['top', 'jobs/', '--once', '--server', server.url])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^leasehold top .* 1 key\b/)
    expect(stdout).toMatch(/^jobs\/1 +alice/m)
    expect(stdout).not.toContain('\x1b')
    await leasehold.close()
  })

  it.skipIf(!hasScript)(
    'draws on a terminal, and leaves it as it found it when q is pressed',
    async () => {
      const server = await place.server('memory:')
      const command = `${process.execPath} ${BIN} top --every 100ms --server ${server.url}; stty -a`
      const child = spawn('script', ['-qec', command, '/dev/null'], {
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      let screen = ''
      child.stdout.on('data', (text) => {
        screen += text
        if (screen.includes('leasehold top') && !screen.includes('\x1b[?1049l'))
          child.stdin.write('q')
      })
      await once(child, 'close')
      expect(screen.indexOf('\x1b[?1049h\x1b[?25l')).toBeGreaterThanOrEqual(0)
      expect(screen).toContain('\x1b[?25h\x1b[?1049l')
      // The terminal echoes and edits lines again.
      expect(screen).toMatch(/[^-]icanon[\s\S]*[^-]echo /)
    },
  )
})

describe('leasehold doctor', () => {
  it('checks the clock, the event loop, the disk, the connection to the server and the guarantees', async () => {
    const server = await place.server('memory:')
    const folder = await place.folder()
    const { code, stdout } = await runLeasehold([
      'doctor',
      '--json',
      '--folder',
      folder,
      '--server',
      server.url,
    ])
    const findings = JSON.parse(stdout) as { check: string; state: string; advice: string }[]
    const checks = findings.map(({ check }) => check)
    expect(checks).toEqual(
      expect.arrayContaining([
        'clock',
        'event loop',
        'disk',
        'round trip',
        'store',
        'tokens',
        'expiry',
      ]),
    )
    expect(findings.find(({ check }) => check === 'store')).toMatchObject({
      state: 'look',
      advice: expect.stringMatching(/serve 'file:<folder>'/),
    })
    expect(code).toBe(findings.some(({ state }) => state === 'bad') ? 1 : 0)
  })

  it('measures the round trip by calls that the server answers', async () => {
    const server = await place.server('memory:')
    const store = await remoteStore(server.url, { timeout: '1s' })
    try {
      expect(await checkRoundTrip(store)).toMatchObject({ check: 'round trip' })
      server.signal('SIGSTOP')
      await expect(checkRoundTrip(store)).rejects.toThrow()
    } finally {
      server.signal('SIGCONT')
      await store.close()
    }
  })

  it('explains an unreachable server and a missing folder', async () => {
    const args = [
      'doctor',
      '--folder',
      'no/such',
      '--server',
      'http://127.0.0.1:1',
      '--timeout',
      '200ms',
    ]
    const { code, stdout } = await runLeasehold(args)
    expect(code).toBe(1)
    expect(stdout).toMatch(/^disk +bad .*cannot write to/m)
    expect(stdout).toMatch(/^server +bad .*start one with 'leasehold serve'/m)
  })
})

describe('leasehold completion', () => {
  it.skipIf(!hasBash)('completes commands, their options and arguments, in bash', async () => {
    const { stdout } = await runLeasehold(['completion', 'bash'])
    const complete = (...words: string[]) =>
      execFileSync(
        '/bin/bash',
        [
          '-c',
          `${stdout}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _leasehold; echo "\${COMPREPLY[*]}"`,
          'bash',
          ...words,
        ],
        { encoding: 'utf8' },
      )
        .trim()
        .split(' ')
    expect(complete('leasehold', 're')).toEqual(['register', 'revoke', 'restore'])
    expect(complete('leasehold', 'access-token', '')).toEqual(
      expect.arrayContaining(['create', 'list', 'revoke']),
    )
    expect(complete('leasehold', 'lock', 'key', '--w')).toEqual(['--wait'])
    expect(complete('leasehold', 'access-token', 'create', '--ex')).toEqual(['--expires'])
    expect(complete('leasehold', 'completion', 'f')).toEqual(['fish'])
  })

  it('knows every command in every shell', async () => {
    for (const shell of ['zsh', 'fish']) {
      const { stdout } = await runLeasehold(['completion', shell])
      for (const word of ['serve', 'lock', 'doctor', 'create', '--tls-cert', '--kill-after']) {
        expect(stdout).toContain(word)
      }
    }
  })
})
