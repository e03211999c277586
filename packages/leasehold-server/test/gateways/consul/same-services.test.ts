import { isDeepStrictEqual } from 'node:util'
import { expect, it } from 'vitest'
import { CONSUL, describeWith, Engine } from '../../../../leasehold/test/engines/index.ts'
import { openConsul } from './open-consul.ts'

/** A call: method, path and body. `NODE` in a path stands for the name of the node. */
type Step = readonly [method: string, path: string, body?: string]

const CHECKS = [
  { TTL: '20m', Status: 'passing', Notes: 'n' },
  {
    ...{ CheckID: 'mine', Name: 'Mine', HTTP: 'http://127.0.0.1:9/x', Interval: '10m' },
    ...{ Timeout: '1500ms', DeregisterCriticalServiceAfter: '90m' },
  },
]
const WEB = {
  ...{ Name: 'web', ID: 'web1', Tags: ['a', 'b'], Port: 8080, Address: '10.0.0.7' },
  ...{ Meta: { Key: 'v' }, Check: { TTL: '10m' } },
}
const register = (service: object): Step => [
  'PUT',
  'agent/service/register',
  JSON.stringify(service),
]

/** What shows everything that is registered. */
const ALL: readonly Step[] = [
  ['GET', 'agent/services'],
  ['GET', 'agent/checks'],
  ['GET', 'catalog/services'],
  ['GET', 'catalog/nodes'],
  ['GET', 'catalog/node/NODE'],
  ['GET', 'catalog/node-services/NODE'],
  ['GET', 'health/node/NODE'],
  ['GET', 'health/state/any'],
  ['GET', 'health/state/critical'],
]

/** Everything that the table in docs/consul-api.md does not list as different. */
const SCRIPT: readonly Step[] = [
  ...ALL,
  ['GET', 'catalog/datacenters'],
  ['GET', 'catalog/service/none'],
  ['GET', 'catalog/service/'],
  ['GET', 'catalog/node/nobody'],
  ['GET', 'catalog/node/'],
  ['GET', 'catalog/node-services/nobody'],
  ['GET', 'health/service/none'],
  ['GET', 'health/service/'],
  ['GET', 'health/checks/none'],
  ['GET', 'health/checks/'],
  ['GET', 'health/node/nobody'],
  ['GET', 'health/node/'],
  ['GET', 'health/state/odd'],
  ['GET', 'health/state/'],
  ['GET', 'agent/service/none'],
  ['GET', 'agent/health/service/id/none'],
  ['GET', 'agent/health/service/name/none'],
  ['GET', 'agent/health/service/name/none?format=text'],
  ['GET', 'agent/health/service/id/'],
  ['GET', 'agent/health/service/name/'],
  ['POST', 'agent/service/register', '{}'],
  ['GET', 'agent/check/register'],
  ['POST', 'agent/check/pass/x'],
  ['GET', 'agent/service/maintenance/x'],
  register({}),
  register({ Name: 'w', Address: '0.0.0.0' }),
  register({ Name: 'w', Weights: { Passing: 0, Warning: 1 } }),
  register({ Name: 'w', Weights: { Passing: 1, Warning: -1 } }),
  register({ Name: 'w', Weights: { Passing: 70_000, Warning: 1 } }),
  register({ Name: 'w', Check: { HTTP: 'http://x' } }),
  register({ Name: 'w', Check: { TTL: '1s', Interval: '1s' } }),
  register({ Name: 'w', Check: { TTL: '1s', Status: 'odd' } }),
  register({ Name: 'w', Check: { TTL: 'x' } }),
  register({ Name: 'w', Check: { Name: 'just a name' } }),
  register({ Name: 'w', Meta: { 'a b': '1' } }),
  register({ Name: 'w', Meta: { 'consul-x': '1' } }),
  register(WEB),
  register({ Name: 'bare' }),
  register({
    ...{ name: 'multi', id: 'm1', Port: 1, Weights: { Passing: 3, Warning: 2 }, Checks: CHECKS },
    ...{ EnableTagOverride: true, TaggedAddresses: { lan: { address: '1.2.3.4', port: 5 } } },
  }),
  ...ALL,
  ['GET', 'agent/service/web1'],
  ['GET', 'agent/service/m1'],
  ['GET', 'catalog/service/web'],
  ['GET', 'catalog/service/web?tag=a'],
  ['GET', 'catalog/service/web?tag=a&tag=zz'],
  ['GET', 'catalog/service/bare'],
  ['GET', 'health/service/web'],
  ['GET', 'health/service/web?passing'],
  ['GET', 'health/service/web?passing=0&tag=b'],
  ['GET', 'health/service/web?passing=x'],
  ['GET', 'health/service/web?index=x'],
  ['GET', 'health/service/multi'],
  ['GET', 'health/service/bare?passing=1'],
  ['GET', 'health/checks/multi'],
  ['GET', 'agent/health/service/id/web1'],
  ['GET', 'agent/health/service/id/bare'],
  ['GET', 'agent/health/service/name/web'],
  ['GET', 'catalog/services?dc=dc1'],
  ['GET', 'kv/a?dc=other'],
  ['PUT', 'agent/check/pass/service:web1?note=hello'],
  ['GET', 'health/service/web?passing'],
  ['GET', 'agent/health/service/id/web1?format=text'],
  ['PUT', 'agent/check/warn/service:web1?note=careful'],
  ['GET', 'health/checks/web'],
  ['GET', 'agent/health/service/id/web1'],
  ['PUT', 'agent/check/fail/service:web1'],
  ['GET', 'health/checks/web'],
  ['PUT', 'agent/check/update/service:web1', '{"Status":"warning","Output":"o\\n2"}'],
  ['GET', 'health/checks/web'],
  ['PUT', 'agent/check/update/service:web1', '{"Status":"odd","Output":"o"}'],
  ['PUT', 'agent/check/pass/none'],
  ['PUT', 'agent/check/pass/'],
  ['PUT', 'agent/check/pass/mine'],
  // Described anew: the check keeps its state.
  register({ ...WEB, Tags: ['c'] }),
  ...ALL,
  ['PUT', 'agent/service/maintenance/web1'],
  ['PUT', 'agent/service/maintenance/web1?enable=x'],
  ['PUT', 'agent/service/maintenance/?enable=true'],
  ['PUT', 'agent/service/maintenance/none?enable=true'],
  ['PUT', 'agent/service/maintenance/web1?enable=true&reason=because'],
  ['PUT', 'agent/service/maintenance/bare?enable=true'],
  ['GET', 'agent/health/service/id/bare'],
  ...ALL,
  ['PUT', 'agent/service/maintenance/web1?enable=false'],
  ['PUT', 'agent/service/maintenance/web1?enable=false'],
  ['PUT', 'agent/service/maintenance/bare?enable=false'],
  ['GET', 'health/checks/web'],
  ['PUT', 'agent/maintenance'],
  ['PUT', 'agent/maintenance?enable=true'],
  ['GET', 'health/service/multi'],
  ['GET', 'health/service/bare?passing'],
  ['PUT', 'agent/maintenance?enable=false'],
  ['PUT', 'agent/check/register', '{"Name":"ttl of the node","ID":"nodettl","TTL":"10m"}'],
  ['PUT', 'agent/check/register', '{"Name":"x","TTL":"1m","ServiceID":"nope"}'],
  ['PUT', 'agent/check/register', '{"TTL":"1m"}'],
  ['PUT', 'agent/check/register', '{"Name":"x"}'],
  ['PUT', 'agent/check/register', '{"Name":"x","TTL":"1m","Status":"odd"}'],
  [
    ...(['PUT', 'agent/check/register'] as const),
    '{"Name":"second","service_id":"web1","TTL":"10m","Status":"passing"}',
  ],
  ...ALL,
  ['PUT', 'agent/check/pass/nodettl'],
  ['GET', 'health/service/web'],
  ['PUT', 'agent/check/deregister/none'],
  ['PUT', 'agent/check/deregister/nodettl'],
  ['PUT', 'agent/check/deregister/second'],
  ...ALL,
  ['PUT', 'agent/service/register?replace-existing-checks=true', '{"Name":"web","ID":"web1"}'],
  // The same id with another name is another service.
  register({ Name: 'other', ID: 'bare' }),
  ...ALL,
  ['PUT', 'agent/service/deregister/none'],
  ['PUT', 'agent/service/deregister/web1'],
  ['PUT', 'agent/service/deregister/web1'],
  ['PUT', 'agent/service/deregister/m1'],
  ...ALL,
]

const HEADERS = ['content-type', 'x-consul-knownleader', 'x-consul-reason']

/** An answer without what must differ: names and ids of nodes, and index numbers. */
async function answerOf(url: string, node: string, [method, path, body]: Step): Promise<unknown> {
  const response = await fetch(`${url}/${path.replace('NODE', node)}`, {
    method,
    ...(body !== undefined && { body }),
  })
  const text = await response.text()
  const index = response.headers.get('x-consul-index')
  const headers = HEADERS.map((name) => response.headers.get(name))
  const isJson = response.headers.get('content-type') === 'application/json'
  const seen = isJson ? comparable(JSON.parse(text), node) : text
  return [method, path, response.status, index !== null && Number(index) > 0, headers, seen]
}

function comparable(value: unknown, node: string): unknown {
  if (value === node) return 'node'
  if (Array.isArray(value)) {
    return value.filter((each) => each?.ID !== 'consul').map((each) => comparable(each, node))
  }
  if (typeof value !== 'object' || value === null) return value
  const fields = value as Record<string, unknown>
  const isNode = fields['Node'] === node
  return Object.fromEntries(
    Object.entries(fields)
      .filter(([name]) => name !== 'ContentHash' && name !== 'consul')
      .map(([name, each]) => {
        if (name === 'CreateIndex' || name === 'ModifyIndex') return [name, Number(each) > 0]
        if (name === 'ID' && isNode) return [name, 'node']
        return [name, comparable(each, node)]
      }),
  )
}

describeWith(CONSUL, 'services of the Consul API and of Consul', () => {
  it('give the same answers to the same calls, field by field', async () => {
    const consul = await Engine.start(CONSUL)
    const scene = await openConsul()
    const theirs = `http://127.0.0.1:${consul.port}/v1`
    try {
      // The agent of Consul writes its own node into the catalog a moment after it is ready.
      const isReady = async () =>
        ((await (await fetch(`${theirs}/catalog/nodes`)).json()) as []).length
      await expect.poll(isReady, { timeout: 30_000 }).toBe(1)
      const ourAnswers: unknown[] = []
      const theirAnswers: unknown[] = []
      for (const step of SCRIPT) {
        const ours = await answerOf(scene.url, 'leasehold', step)
        // An agent of Consul answers at once, and its catalog knows a change a moment later.
        const until = Date.now() + (step[0] === 'GET' ? 10_000 : 0)
        let real = await answerOf(theirs, 'alone', step)
        while (!isDeepStrictEqual(ours, real) && Date.now() < until) {
          await new Promise((resolve) => setTimeout(resolve, 50))
          real = await answerOf(theirs, 'alone', step)
        }
        ourAnswers.push(ours)
        theirAnswers.push(real)
      }
      expect(ourAnswers).toEqual(theirAnswers)
    } finally {
      await scene.gateway.close()
      await consul.stop()
    }
  }, 240_000)
})
