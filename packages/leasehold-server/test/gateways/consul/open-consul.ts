import Consul from 'consul'
import { type TestStoreOptions, testStore } from 'leasehold/testing'
import { startConsulGateway } from '../../../src/gateways/consul/index.ts'
import { quiet } from '../view-scene.ts'

/** The Consul API on a store whose clock the test moves, with a client of npm `consul`. */
export async function openConsul(options: TestStoreOptions = {}) {
  const { store, clock } = testStore(options)
  let ids = 0
  const random = { next: () => 0.5, id: () => `id-${ids++}` }
  const listen = { host: '127.0.0.1', port: 0 }
  const start = (served = store) =>
    startConsulGateway({ ...listen, store: served, clock, random, log: quiet })
  const gateway = await start()
  const url = `http://127.0.0.1:${gateway.port}/v1`
  const client = new Consul({ host: '127.0.0.1', port: gateway.port })
  return { store, clock, gateway, client, url, start }
}

/** One entry of an answer, as Consul describes it. */
export interface Described {
  readonly Key: string
  readonly Value: string | null
  readonly Flags: number
  readonly LockIndex: number
  readonly Session?: string
  readonly CreateIndex: number
  readonly ModifyIndex: number
}

/** Reads one key as JSON; `undefined` if it does not exist. */
export async function entryAt(url: string, key: string): Promise<Described | undefined> {
  const response = await fetch(`${url}/kv/${key}`)
  return response.status === 404 ? undefined : ((await response.json()) as [Described])[0]
}

export async function put(url: string, path: string, body: string | Buffer = ''): Promise<string> {
  const response = await fetch(`${url}/${path}`, { method: 'PUT', body: body as string })
  return response.text()
}
