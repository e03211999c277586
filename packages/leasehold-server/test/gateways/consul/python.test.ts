import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { openConsul } from './open-consul.ts'

const run = promisify(execFile)
const PYTHON = '/usr/bin/python3'
const SCRIPT = fileURLToPath(new URL('services.py', import.meta.url))
const hasClient = existsSync('/usr/lib/python3/dist-packages/consul')

// Skipped without python3-consul: scripts/engines.sh installs it.
describe.skipIf(!hasClient && process.env['CI'] !== 'true')("Debian's python3-consul", () => {
  it('registers, checks, watches and deregisters services', async () => {
    const { gateway } = await openConsul()
    try {
      const { stdout } = await run(PYTHON, [SCRIPT, String(gateway.port)], { timeout: 60_000 })
      expect(JSON.parse(stdout)).toEqual({
        services: ['py1', 'py2'],
        catalog: { web: ['blue'] },
        'passing before': ['py2'],
        'index rises': true,
        'passing after': ['py1', 'py2'],
        tag: ['py1'],
        output: 'fine',
        'in maintenance': ['py1'],
        checks: ['service:py1', 'extra'],
        left: [],
      })
    } finally {
      await gateway.close()
    }
  }, 90_000)
})
