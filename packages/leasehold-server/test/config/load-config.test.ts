import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { fileNameOf, loadConfig, SETTING_NAMES, SETTINGS } from '../../src/config/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'leasehold-config-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
function file(content: unknown): string {
  const path = join(folder, `${++files}.json`)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

describe('the configuration', () => {
  it('takes a flag before the environment, the environment before the file, the file before the standard', () => {
    const config = file({ host: 'in-file', port: 3, logLevel: 'info' })
    const { values, origins } = loadConfig(
      { config, host: 'by-flag' },
      { LEASEHOLD_HOST: 'by-environment', LEASEHOLD_PORT: '2' },
    )
    expect(values).toMatchObject({ host: 'by-flag', port: 2, logLevel: 'info' })
    expect(values.store).toBe('file:./data')
    expect(origins).toMatchObject({
      host: '--host',
      port: 'LEASEHOLD_PORT',
      logLevel: `logLevel in ${config}`,
      store: 'the default',
    })
  })

  it('takes the file that the environment names, and leaves out what is set to nothing', () => {
    const { values } = loadConfig(
      {},
      { LEASEHOLD_CONFIG: file({ port: 4, insecureOpenNetwork: true }), LEASEHOLD_PORT: '' },
    )
    expect(values).toMatchObject({ port: 4, insecureOpenNetwork: true, drain: 5000 })
  })

  it.each<[string, () => void, RegExp]>([
    [
      'a flag',
      () => loadConfig({ port: '65536' }, {}),
      /port is "65536" \(from --port\): it must be an integer from 0 to 65535$/,
    ],
    [
      'a variable',
      () => loadConfig({}, { LEASEHOLD_LOG_LEVEL: 'loud' }),
      /logLevel is "loud" \(from LEASEHOLD_LOG_LEVEL\): it must be one of silent, error/,
    ],
    [
      'a value in the file',
      () => loadConfig({ config: file({ drain: 'soon' }) }, {}),
      /drain is "soon" \(from drain in .*\.json\): it must be a duration such as '5s'/,
    ],
    [
      'a flag that is empty',
      () => loadConfig({ host: '' }, {}),
      /host is "" \(from --host\): it must not be empty/,
    ],
    [
      'a name that means nothing',
      () => loadConfig({ config: file({ prot: 1 }) }, {}),
      /"prot" in .*\.json is not a setting. Remove it, or use one of store, host, port/,
    ],
    [
      'a value of another kind',
      () => loadConfig({ config: file({ port: [1] }) }, {}),
      /port in .*\.json is an array: it must be a string, a number, true or false/,
    ],
    [
      'a file that is not JSON',
      () => loadConfig({ config: file('{port:') }, {}),
      /is not valid JSON: /,
    ],
    [
      'a file that is not an object',
      () => loadConfig({ config: file('[]') }, {}),
      /must contain a JSON object/,
    ],
    [
      'a file that is not there',
      () => loadConfig({ config: 'no/such.json' }, {}),
      /cannot read the file "no\/such.json" \(from --config\): .* Use a file that exists/,
    ],
  ])('refuses %s, and names the value, its source and the fix', (_name, load, message) => {
    expect(load).toThrow(message)
    expect(load).toThrow(expect.objectContaining({ code: 'invalid-argument' }))
  })

  it('has for every name a flag of the same name', () => {
    expect(SETTING_NAMES.map((name) => fileNameOf(SETTINGS[name]))).toEqual(SETTING_NAMES)
  })
})
