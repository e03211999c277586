import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { afterEach, expect, it } from 'vitest'
import { Leasehold } from '../../src/index.ts'
import {
  describeWith,
  Engine,
  type EngineSpec,
  ETCD,
  etcdCall,
  REDIS,
  redisReplica,
  redisSentinel,
  ZOOKEEPER,
} from '../engines/index.ts'
import { Served } from './served.ts'

/** An address must escape it, and a message must not show it. */
const PASSWORD = 'se:c/r@t'
const WRITTEN = encodeURIComponent(PASSWORD)

const certificate = (name: string) =>
  fileURLToPath(new URL(`../../../leasehold-server/test/certificates/${name}`, import.meta.url))
/**
 * The variables that make Node trust the authority of the engines' certificates. gRPC has its own
 * variable, which takes precedence.
 */
const TRUSTING = {
  NODE_EXTRA_CA_CERTS: certificate('ca.pem'),
  GRPC_DEFAULT_SSL_ROOTS_FILE_PATH: '',
}

const REDIS_TLS: EngineSpec = {
  ...REDIS,
  args: (folder, port) => [
    ...REDIS.args(folder, 0),
    ...['--tls-port', String(port), '--tls-auth-clients', 'no'],
    ...['--tls-cert-file', certificate('server.pem'), '--tls-key-file', certificate('server.key')],
    ...['--tls-ca-cert-file', certificate('ca.pem')],
  ],
}

const REDIS_LOGIN: EngineSpec = {
  ...REDIS,
  args: (folder, port) => [...REDIS.args(folder, port), '--requirepass', PASSWORD],
}

const ETCD_TLS: EngineSpec = {
  ...ETCD,
  args: (folder, port) => [
    ...ETCD.args(folder, port).map((arg) =>
      arg === `http://127.0.0.1:${port}` ? `https://127.0.0.1:${port}` : arg,
    ),
    ...['--cert-file', certificate('server.pem'), '--key-file', certificate('server.key')],
  ],
  ready: /serving client|ready to serve client requests/i,
}

const running: { stop(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const each of running.splice(0).reverse()) await each.stop()
})

async function start(spec: EngineSpec): Promise<Engine> {
  const engine = await Engine.start(spec)
  running.push(engine)
  return engine
}

async function serve(address: string, settings?: NodeJS.ProcessEnv): Promise<Served> {
  const served = await Served.on(address, settings)
  running.push({ stop: () => served.end() })
  return served
}

async function canLock({ url }: Served): Promise<void> {
  const leasehold = await Leasehold.open(url)
  const lock = await leasehold.lock('job', { ttl: '10s' })
  expect(lock.held).toBe(true)
  await lock.release()
  await leasehold.close()
}

/** Returns why a server does not start on this address. The reason must not show the password. */
async function refusal(address: string, settings?: NodeJS.ProcessEnv): Promise<string> {
  const error = await serve(address, settings).then(
    () => undefined,
    (thrown: Error) => thrown,
  )
  expect(error).toBeDefined()
  expect(error!.message).not.toContain(PASSWORD)
  expect(error!.message).not.toContain(WRITTEN)
  return error!.message
}

describeWith(REDIS, 'a server on a Redis', () => {
  it('logs in with the credentials in the address, and reports if they are wrong', async () => {
    const { port } = await start(REDIS_LOGIN)
    await canLock(await serve(`redis://:${WRITTEN}@127.0.0.1:${port}`))
    expect(await refusal(`redis://127.0.0.1:${port}`)).toMatch(/NOAUTH|[Aa]uthentication/)
    expect(await refusal(`redis://:${WRITTEN}wrong@127.0.0.1:${port}`)).toMatch(/WRONGPASS|NOAUTH/)
  }, 60_000)

  it('uses TLS and checks the certificate', async () => {
    const { port } = await start(REDIS_TLS)
    await canLock(await serve(`rediss://127.0.0.1:${port}`, TRUSTING))
    expect(await refusal(`rediss://127.0.0.1:${port}`)).toMatch(/certificate|signed/)
  }, 60_000)

  it('finds the master by Sentinel, also after a failover', async () => {
    const master = await start(REDIS)
    await start(redisReplica(master.port))
    const sentinel = await start(redisSentinel(master.port))
    const served = await serve(`redis+sentinel://127.0.0.1:${sentinel.port}/main`)
    await canLock(served)
    // Sentinel must know the replica before it can promote it.
    const asked = new Redis({ port: sentinel.port, host: '127.0.0.1' })
    const known = async () => ((await asked.call('SENTINEL', 'replicas', 'main')) as []).length
    await expect.poll(known).toBe(1)
    asked.disconnect()
    await master.kill()
    await expect.poll(() => canLock(served).then(() => true), { timeout: 30_000 }).toBe(true)
  }, 90_000)
})

describeWith(ETCD, 'a server on an etcd', () => {
  it('logs in with the credentials in the address, and reports if they are wrong', async () => {
    const { port } = await start(ETCD)
    await etcdCall(port, 'auth/user/add', { name: 'root', password: PASSWORD })
    await etcdCall(port, 'auth/role/add', { name: 'root' })
    await etcdCall(port, 'auth/user/grant', { user: 'root', role: 'root' })
    await etcdCall(port, 'auth/enable')
    await canLock(await serve(`etcd://root:${WRITTEN}@127.0.0.1:${port}/mine/`))
    expect(await refusal(`etcd://127.0.0.1:${port}/mine/`)).toMatch(/user|auth/)
    expect(await refusal(`etcd://root:${WRITTEN}x@127.0.0.1:${port}/mine/`)).toMatch(/login|auth/)
  }, 60_000)

  it('uses TLS and checks the certificate', async () => {
    const { port } = await start(ETCD_TLS)
    await canLock(await serve(`etcds://127.0.0.1:${port}/mine/`, TRUSTING))
    expect(await refusal(`etcds://127.0.0.1:${port}/mine/`)).toMatch(/certificate|signed/)
  }, 60_000)
})

describeWith(ZOOKEEPER, 'a server on a ZooKeeper', () => {
  it('logs in with the credentials in the address; others have no access', async () => {
    const { port } = await start(ZOOKEEPER)
    await canLock(await serve(`zookeeper://ada:${WRITTEN}@127.0.0.1:${port}/mine`))
    await canLock(await serve(`zookeeper://ada:${WRITTEN}@127.0.0.1:${port}/mine`))
    expect(await refusal(`zookeeper://127.0.0.1:${port}/mine`)).toMatch(
      /auth|ACL|not allowed|refuse/,
    )
  }, 60_000)
})
