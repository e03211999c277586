import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Leasehold } from 'leasehold'
import { ERRORS } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { describeWith, Engine, prometheus } from '../../../leasehold/test/engines/index.ts'
import { programOf } from '../../src/cli/program.ts'
import { runLeasehold } from '../setup/run-leasehold.ts'
import { Place, type ServerProcess } from '../setup/server-process.ts'

/**
 * The files for Prometheus, Grafana and Loki in deploy, tested with a real Prometheus that scrapes a
 * real server. Only Grafana and Loki do not run here.
 */
const DEPLOY = fileURLToPath(new URL('../../../../deploy/', import.meta.url))
const file = (path: string) => join(DEPLOY, path)
const read = (path: string) => readFileSync(file(path), 'utf8')

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly annotations: { readonly summary: string; readonly action: string }
}
const rulesIn = (path: string): Rule[] =>
  (parse(read(path)) as { groups: { rules: Rule[] }[] }).groups.flatMap(({ rules }) => rules)
const rules = rulesIn('prometheus/leasehold.rules.yml')
const logRules = rulesIn('loki/leasehold.rules.yml')

interface Panel {
  readonly title: string
  readonly type: string
  readonly targets?: readonly { readonly expr: string }[]
}
const dashboard = JSON.parse(read('grafana/dashboards/leasehold.json')) as {
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly { name: string; definition?: string }[] }
}
const panels = dashboard.panels.filter(({ type }) => type !== 'row')
const queries = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
)

/** A metric in an expression, with its matchers. */
interface Selector {
  readonly name: string
  readonly matchers: readonly { label: string; operator: string; value: string }[]
}
function selectorsIn(expr: string): Selector[] {
  const found = expr.matchAll(/\b(up|(?:leasehold|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)
  return [...found].map(([, name = '', inside = '']) => ({
    name,
    matchers: [...inside.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)].map(
      ([, label = '', operator = '', value = '']) => ({ label, operator, value }),
    ),
  }))
}

const place = new Place()
afterAll(() => place.clean())

const PROMETHEUS = prometheus((folder) => join(folder, 'prometheus.yml'))

describeWith(PROMETHEUS, 'deploy/prometheus', () => {
  const promtool = (...args: string[]) =>
    promisify(execFile)('promtool', args, { cwd: file('prometheus') })

  it('has valid rules and configurations', async () => {
    await promtool('check', 'rules', 'leasehold.rules.yml')
    await promtool('check', 'config', 'prometheus.yml')
    await promtool('check', 'config', '--syntax-only', 'kubernetes.yml')
  })

  it('has a passing test for each alert', async () => {
    await promtool('test', 'rules', 'leasehold.rules.test.yml')
    const tested = [...read('prometheus/leasehold.rules.test.yml').matchAll(/alertname="(\w+)"/g)]
    expect(new Set(tested.map(([, name]) => name))).toEqual(new Set(rules.map((it) => it.alert)))
  })
})

describeWith(PROMETHEUS, 'a Prometheus that scrapes a server', () => {
  let server: ServerProcess
  let engine: Engine
  const load = new AbortController()
  let loading: Promise<void>

  beforeAll(async () => {
    const store = `file:${await place.folder()}`
    const create = async (...args: string[]) =>
      (await runLeasehold(['access-token', 'create', ...args, '--store', store])).stdout.trim()
    const worker = await create('worker', '--right', 'all:')
    const reader = await create('prometheus', '--right', 'read:')
    server = await place.serverOn(store).start()
    loading = use(server.url, worker, load.signal)
    const config = parse(read('prometheus/prometheus.yml'))
    config.global = { scrape_interval: '500ms', scrape_timeout: '500ms', evaluation_interval: '1s' }
    config.rule_files = [file('prometheus/leasehold.rules.yml')]
    const [job] = config.scrape_configs
    expect(job.static_configs).toEqual([{ targets: ['leasehold:7420'] }])
    job.authorization = { credentials: reader }
    job.static_configs = [{ targets: [`127.0.0.1:${server.port}`] }]
    const prepare = (folder: string) =>
      writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
    engine = await Engine.start({ ...PROMETHEUS, prepare })
  })

  afterAll(async () => {
    load.abort()
    await engine?.stop()
    await loading
  })

  async function get(path: string, parameters: Record<string, string> = {}) {
    const url = `http://127.0.0.1:${engine.port}/api/v1/${path}?${new URLSearchParams(parameters)}`
    const answer = (await (await fetch(url)).json()) as { data: never; error?: string }
    expect(answer.error).toBeUndefined()
    return answer.data
  }
  interface Series {
    readonly metric: Readonly<Record<string, string>>
    readonly value: readonly [number, string]
  }
  const query = async (expr: string): Promise<Series[]> =>
    ((await get('query', { query: expr })) as { result: Series[] }).result
  const raised = async (): Promise<string[]> => {
    const { alerts } = (await get('alerts')) as {
      alerts: { labels: { alertname: string }; state: string }[]
    }
    const named = alerts.map(({ labels, state }) => ({ name: labels.alertname, state }))
    return named.filter(({ name }) => !OF_SPEED.has(name)).map((it) => `${it.name} ${it.state}`)
  }

  it.each(queries)('shows "$title": $expr', { timeout: 60_000 }, async ({ expr }) => {
    const written = expr.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '5s')
    expect(written).not.toContain('$')
    await expect
      .poll(
        async () => (await query(written)).filter(({ value }) => Number.isFinite(+value[1])).length,
        {
          timeout: 20_000,
        },
      )
      .toBeGreaterThan(0)
  })

  it('fills the variable for the servers', async () => {
    const { definition = '' } = dashboard.templating.list.find(({ name }) => name === 'instance')!
    const [, metric = '', label = ''] = /^label_values\((\w+), (\w+)\)$/.exec(definition)!
    const found = await query(metric)
    expect(found.map((it) => it.metric[label])).toEqual([`127.0.0.1:${server.port}`])
  })

  const used = new Map(
    [...queries.map(({ expr }) => expr), ...rules.map(({ expr }) => expr)]
      .flatMap(selectorsIn)
      .map((selector) => [JSON.stringify(selector), selector]),
  )
  it.each([...used.values()])('has $name with the labels $matchers', async ({ name, matchers }) => {
    const found = await query(name)
    expect(found).not.toEqual([])
    for (const { label, operator, value } of matchers) {
      const values = found.map(({ metric }) => metric[label])
      expect(values).not.toContain(undefined)
      if (value === '$instance' || label === 'job') continue
      // Most error codes appear only after such a failure.
      const known = label === 'code' ? Object.keys(ERRORS) : values
      const patterns = operator.includes('~') ? value.split('|') : [value]
      for (const pattern of patterns) {
        expect(known.some((it) => new RegExp(`^(?:${pattern})$`).test(it!))).toBe(true)
      }
    }
  })

  it('raises no alert while the server is healthy, and one when it is gone', async () => {
    const evaluated = async () => {
      const { groups } = (await get('rules')) as {
        groups: { rules: { name: string; health: string }[] }[]
      }
      return groups.flatMap((it) => it.rules).map(({ name, health }) => `${name} ${health}`)
    }
    await expect.poll(evaluated, { timeout: 20_000 }).toEqual(rules.map((it) => `${it.alert} ok`))
    // At first nothing has increased yet between two scrapes, which is true of a stopped server too.
    await expect.poll(raised, { timeout: 60_000 }).toEqual([])
    load.abort()
    await loading
    await server.end()
    await expect.poll(raised, { timeout: 60_000 }).toEqual(['LeaseholdDown pending'])
  })
})

/** Whether these are raised depends on how busy the machine is. Their unit tests check them. */
const OF_SPEED = new Set(['LeaseholdSlow', 'LeaseholdBusy', 'LeaseholdExpiryLate'])

/** Calls of all kinds, until the signal: also a waiter, an expiry, a revocation and a failure. */
async function use(url: string, accessToken: string, signal: AbortSignal): Promise<void> {
  const leasehold = await Leasehold.open(url, { accessToken })
  const store = await remoteStore(url, { accessToken })
  const held = await leasehold.lock('held')
  const waiting = leasehold.lock('held', { signal }).catch(() => undefined)
  for (let round = 0; !signal.aborted; round++) {
    await leasehold.withLock('busy', () => undefined)
    await store.grant({ holder: 'dead', ttl: 20, claims: [{ key: 'expires' }] })
    const granted = await store.grant({ holder: 'removed', ttl: 60_000, claims: [{ key: 'r' }] })
    if (granted.outcome !== 'granted') throw new Error('"r" is busy')
    const { lease } = granted
    await store.revoke({ target: { lease }, by: 'test', why: 'as part of the load' })
    // Failures are rare enough to raise no alert.
    if (round % 20 === 0) {
      await store.claim({ lease, claims: [{ key: 'late' }] }).catch(() => undefined)
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await waiting
  await held.release()
  await leasehold.close()
  await store.close()
}

describe('deploy/loki', () => {
  it('looks for a line that the server writes when the audit fails', async () => {
    const [, line = ''] = /\|= "([^"]+)"/.exec(logRules[0]!.expr)!
    const server = await place.server(undefined, ['--audit', '/dev/full'])
    const store = await remoteStore(server.url)
    await store.grant({ holder: 'a', ttl: 60_000, claims: [{ key: 'k' }] })
    await store.revoke({ target: { key: 'k' } })
    await server.said(new RegExp(line))
    await store.close()
  })
})

describe('the alerts', () => {
  it('say what to do, and name commands that exist', () => {
    const commands = programOf([]).commands.map((it) => it.name())
    for (const { alert, annotations } of [...rules, ...logRules]) {
      expect(annotations.summary.length, alert).toBeGreaterThan(20)
      expect(annotations.action.length, alert).toBeGreaterThan(80)
      for (const [, command] of annotations.action.matchAll(/`leasehold ([\w-]+)/g)) {
        expect(commands).toContain(command)
      }
    }
  })
})
