import { expect } from 'vitest'
import { gatewayScene } from '../gateway-scene.ts'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: the tests read many forms of answers.
  readonly body: any
}

export const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases'

/** A Lease as a client sends it. */
export function lease(name: string, spec: object = {}, metadata: object = {}) {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, ...metadata },
    spec,
  }
}

/** A server with the gateway, and plain requests to it. */
export async function kubernetesScene(options: Parameters<typeof gatewayScene>[1] = {}) {
  const scene = await gatewayScene({ kubernetes: true }, options)
  const base = `${scene.url}/kubernetes`
  return { ...scene, base, ...requestsTo(base) }
}

export function requestsTo(base: string) {
  const call = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> => {
    const type = { 'content-type': 'application/json' }
    const response = await fetch(base + path, {
      method,
      headers: { ...(body === undefined ? {} : type), ...headers },
      ...(body !== undefined && {
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    })
    return { status: response.status, headers: response.headers, body: await response.json() }
  }
  const done = async (...args: Parameters<typeof call>) => {
    const answer = await call(...args)
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    return answer.body
  }
  return {
    call,
    create: (body: { metadata: { name: string } }) => done('POST', LEASES, body),
    get: (name: string) => done('GET', `${LEASES}/${name}`),
    put: (body: { metadata: { name: string } }) =>
      call('PUT', `${LEASES}/${body.metadata.name}`, body),
    patch: (name: string, kind: string, body: unknown) =>
      call('PATCH', `${LEASES}/${name}`, body, { 'content-type': `application/${kind}+json` }),
    remove: (name: string, body?: unknown) => call('DELETE', `${LEASES}/${name}`, body),
    watch: (query: string, headers: Record<string, string> = {}) =>
      openWatch(`${base}${LEASES}?watch=true&${query}`, headers),
  }
}

/** The events of a watch, one at a time. */
async function openWatch(url: string, headers: Record<string, string>) {
  const stop = new AbortController()
  const response = await fetch(url, { headers, signal: stop.signal })
  expect(response.status).toBe(200)
  const lines = linesOf(response)
  return {
    next: async () => {
      const { value, done } = await lines.next()
      // biome-ignore lint/suspicious/noExplicitAny: the tests read many forms of answers.
      return done ? undefined : (JSON.parse(value) as { type: string; object: any })
    },
    close: () => stop.abort(),
  }
}

async function* linesOf(response: Response): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of response.body!) {
    const lines = (rest + Buffer.from(chunk).toString()).split('\n')
    rest = lines.pop()!
    yield* lines
  }
}
