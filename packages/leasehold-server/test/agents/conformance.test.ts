import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { memoryStore } from 'leasehold/memory'
import { expect, it } from 'vitest'
import { findBuilt } from '../../../leasehold/test/engines/engine.ts'
import { afterFile } from '../../../leasehold/test/setup/after-file.ts'
import { createServer } from '../../src/index.ts'
import { Place } from '../setup/server-process.ts'

const place = new Place()
afterFile(() => place.clean())

const installed = findBuilt('mcp-conformance')
const module = (...path: string[]) => join(installed ?? '', 'node_modules', ...path)
const NODE = module(`node-${process.platform}-${process.arch}`, 'bin/node')
const CONFORMANCE = module('@modelcontextprotocol/conformance/dist/index.js')
const isMissing = installed === undefined || !existsSync(NODE)
const reason = isMissing ? ' (skipped: scripts/mcp-conformance.sh installs it)' : ''

/** Most scenarios want a server that was made for them, with these tools, prompts and resources. */
const NEEDS_TEST_SERVER =
  /^Not testable: server |(Tool|Prompt) '?(test|json_schema_2020_12)_\w+'? not found|Resource not found: test:\/\/|uri is "test:\/\//
/** These need a part of the protocol that is not offered, or follow from a missing tool. */
const NOT_OFFERED = [
  'logging-set-level',
  'tools-call-with-logging',
  'completion-complete',
  'sep-2322-multi-round-r1',
  'sep-2322-reject-tampered-state',
]

interface Check {
  readonly id: string
  readonly status: string
  readonly errorMessage?: string
}

/** The checks that a server at this URL passes, and those that it fails. */
async function check(
  url: string,
  revision: string,
): Promise<{ passed: string[]; failed: Check[] }> {
  const folder = await place.folder()
  const args = ['server', '--url', url, '--suite', 'all', '--spec-version', revision, '-o', folder]
  await new Promise((resolve) => {
    execFile(NODE, [CONFORMANCE, ...args], { maxBuffer: 1 << 26 }, resolve)
  })
  const files = (await readdir(folder)).map((name) => join(folder, name, 'checks.json'))
  const checks = (await Promise.all(files.map((file) => readFile(file, 'utf8')))).flatMap(
    (text) => JSON.parse(text) as Check[],
  )
  return {
    passed: checks.filter(({ status }) => status === 'SUCCESS').map(({ id }) => id),
    failed: checks.filter(
      ({ id, status, errorMessage = '' }) =>
        status === 'FAILURE' && !NEEDS_TEST_SERVER.test(errorMessage) && !NOT_OFFERED.includes(id),
    ),
  }
}

it.skipIf(isMissing).each([
  ['2025-11-25', 40],
  ['2026-07-28', 90],
])(
  `/mcp passes the conformance tests of MCP, revision %s${reason}`,
  async (revision, atLeast) => {
    const server = await createServer({ store: memoryStore(), port: 0 })
    afterFile(() => server.close())
    const { passed, failed } = await check(`${server.url}/mcp?agent=tested`, revision)
    expect(failed).toEqual([])
    expect(passed.length).toBeGreaterThanOrEqual(atLeast)
  },
  120_000,
)
