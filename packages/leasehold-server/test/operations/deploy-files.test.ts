import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { Agent, get } from 'node:https'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { runLeasehold, startLeasehold } from '../setup/run-leasehold.ts'
import { Place } from '../setup/server-process.ts'

/**
 * The compose file and the manifests for Kubernetes: everything that they say about the server is
 * true of the real one. Docker and Kubernetes do not run here.
 */
const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
const DEPLOY = join(ROOT, 'deploy')
const read = (path: string) => readFileSync(join(DEPLOY, path), 'utf8')
const certificate = (name: string) =>
  fileURLToPath(new URL(`../certificates/${name}`, import.meta.url))

const files = readdirSync(DEPLOY, { recursive: true, encoding: 'utf8' })
const run = promisify(execFile)
const place = new Place()
afterAll(() => place.clean())

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string; readonly scheme: string }
}

/** What Kubernetes calls a container, as far as it is tested. */
interface Container {
  readonly name: string
  readonly image: string
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly env?: readonly { name: string; value?: string; valueFrom?: object }[]
  readonly ports?: readonly { name: string; containerPort: number }[]
  readonly volumeMounts: readonly { name: string; mountPath: string }[]
  readonly resources?: { readonly requests: object; readonly limits: object }
  readonly securityContext: object
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
  readonly startupProbe: Probe
}

const compose = parse(read('compose.yml'))
const MANIFESTS = ['file-store.yaml', 'shared-store.yaml']
const manifests = MANIFESTS.map((name) => {
  const documents = parseAllDocuments(read(`kubernetes/${name}`)).map((it) => it.toJS())
  const workload = documents.find(({ kind }) => /^(Deployment|StatefulSet)$/.test(kind))
  const pod = workload.spec.template.spec
  const server = pod.containers[0] as Container
  return { name, documents, workload, pod, server }
})

let flags: string[]
let variables: string[]
let help = ''
beforeAll(async () => {
  help = (await runLeasehold(['serve', '--help'])).stdout
  flags = [...help.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, flag]) => flag!)
  variables = [...help.matchAll(/\[(LEASEHOLD_\w+)\]/g)].map(([, name]) => name!)
})

describe('the files in deploy', () => {
  it.each(files.filter((it) => /\.(ya?ml|json)$/.test(it)))('%s can be read', (name) => {
    if (name.endsWith('.json')) JSON.parse(read(name))
    else for (const document of parseAllDocuments(read(name))) expect(document.errors).toEqual([])
  })

  it('name only settings and flags that the server has', () => {
    expect(variables.length).toBeGreaterThan(10)
    const texts = files.filter((it) => /\.|Dockerfile/.test(it) && !it.endsWith('.json'))
    for (const name of texts) {
      for (const [variable] of read(name).matchAll(/\bLEASEHOLD_[A-Z_]+/g)) {
        expect(variables, name).toContain(variable)
      }
    }
    for (const { server } of manifests) {
      for (const flag of server.args!.filter((it) => it.startsWith('-'))) {
        expect(flags).toContain(flag)
      }
    }
  })

  it('use the port of the server', () => {
    const [, port] = /the port to listen on.*?\(default: (\d+)\)/s.exec(help)!
    expect(read('Dockerfile')).toContain(`EXPOSE ${port}\n`)
    expect(compose.services.leasehold.ports).toEqual([`127.0.0.1:${port}:${port}`])
    for (const { documents, server } of manifests) {
      expect(server.ports).toEqual([{ name: 'leasehold', containerPort: Number(port) }])
      expect(server.env).toContainEqual({ name: 'LEASEHOLD_PORT', value: port })
      const services = documents.filter(({ kind }) => kind === 'Service')
      expect(services.map(({ metadata }) => metadata.name)).toEqual([
        'leasehold',
        'leasehold-servers',
      ])
      for (const { spec } of services) {
        expect(spec.ports).toEqual([
          { name: 'leasehold', port: Number(port), targetPort: 'leasehold' },
        ])
      }
    }
  })
})

describe('deploy/compose.yml', () => {
  const { leasehold, prometheus, grafana } = compose.services

  it('mounts files that exist, where the others look for them', () => {
    const mounts = [...prometheus.volumes, ...grafana.volumes, ...leasehold.volumes] as string[]
    for (const mount of mounts) {
      const [source = ''] = mount.split(':')
      if (source.startsWith('.')) expect(existsSync(join(DEPLOY, source)), source).toBe(true)
      else expect(compose.volumes).toHaveProperty(source)
    }
    expect(existsSync(join(DEPLOY, leasehold.build.context, leasehold.build.dockerfile))).toBe(true)
    expect(leasehold.volumes).toEqual(['leasehold:/data'])
    expect(leasehold.environment.LEASEHOLD_STORE).toBe('file:/data')
    const [provider] = parse(read('grafana/provisioning/dashboards/leasehold.yml')).providers
    expect(grafana.volumes).toContain(`./grafana/dashboards:${provider.options.path}:ro`)
    const [source] = parse(read('grafana/provisioning/datasources/prometheus.yml')).datasources
    expect(source.url).toBe('http://prometheus:9090')
    const [job] = parse(read('prometheus/prometheus.yml')).scrape_configs
    expect(job.static_configs).toEqual([{ targets: ['leasehold:7420'] }])
  })

  it('has a server that starts with its settings, and a health check that asks it', async () => {
    const env = {
      ...leasehold.environment,
      LEASEHOLD_STORE: `file:${await place.folder()}`,
      LEASEHOLD_HOST: '127.0.0.1',
      LEASEHOLD_PORT: '0',
    }
    const server = startLeasehold(['serve'], { env })
    await server.printed(/listens on http:\S+/)
    const [, port = ''] = /:(\d+)$/m.exec(server.stdout)!
    const [, program, ...args] = leasehold.healthcheck.test as string[]
    expect(program).toBe('node')
    const check = () =>
      run(
        process.execPath,
        args.map((it) => it.replace('7420', port)),
      )
    await check()
    server.child.kill('SIGKILL')
    await server.ended
    await expect(check()).rejects.toMatchObject({ code: 1 })
  })
})

describe.each(manifests)('deploy/kubernetes/$name', ({ documents, workload, pod, server }) => {
  it('runs without rights, with requests and limits of resources', () => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 })
    for (const container of [...(pod.initContainers ?? []), server] as Container[]) {
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
    }
    expect(server.resources).toHaveProperty('requests.cpu')
    expect(server.resources).toHaveProperty('requests.memory')
    expect(server.resources).toHaveProperty('limits.memory')
  })

  it('selects its own pods, mounts its own volumes, and stops after the server has drained', () => {
    const { labels } = workload.spec.template.metadata
    expect(workload.spec.selector.matchLabels).toEqual(labels)
    for (const { kind, spec } of documents) {
      if (kind === 'Service') expect(spec.selector).toEqual(labels)
      if (kind === 'PodDisruptionBudget') expect(spec.selector.matchLabels).toEqual(labels)
    }
    const volumes = [
      ...pod.volumes,
      ...(workload.spec.volumeClaimTemplates ?? []).map((it: { metadata: object }) => it.metadata),
    ].map(({ name }) => name)
    for (const { name } of server.volumeMounts) expect(volumes).toContain(name)
    const folders = server.volumeMounts.map(({ mountPath }) => mountPath)
    for (const { value = '' } of server.env!) {
      const path = /^(?:file:)?(\/.*)$/.exec(value)?.[1]
      if (path)
        expect(
          folders.some((folder) => path.startsWith(`${folder}/`)),
          path,
        ).toBe(true)
    }
    expect(server.args).toEqual(['--drain', '10s'])
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(10)
  })
})

describe('the server of a manifest', () => {
  const [single, shared] = manifests
  const ours: Record<string, string> = {
    '/tls/tls.crt': certificate('server.pem'),
    '/tls/tls.key': certificate('server.key'),
  }
  const settings = (container: Container, more: Record<string, string>) => ({
    ...Object.fromEntries(
      container.env!.map(({ name, value = '' }) => [name, ours[value] ?? value]),
    ),
    LEASEHOLD_HOST: '127.0.0.1',
    LEASEHOLD_PORT: '0',
    ...more,
  })
  const agent = new Agent({ ca: readFileSync(certificate('ca.pem')) })
  const statusOf = (url: string) =>
    new Promise<number>((resolve, reject) => {
      get(url, { agent }, (answer) => resolve(answer.resume().statusCode!)).on('error', reject)
    })
  async function probe(container: Container, url: string) {
    for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
      const { path, port, scheme } = container[name].httpGet
      expect([port, scheme]).toEqual(['leasehold', 'HTTPS'])
      expect([path, await statusOf(url + path)]).toEqual([path, 200])
    }
  }
  async function start(container: Container, more: Record<string, string>) {
    const server = startLeasehold(['serve', ...container.args!], { env: settings(container, more) })
    await server.printed(/listens on https:\S+/)
    return { server, url: /https:\S+/.exec(server.stdout)![0] }
  }

  it('creates its first access token once, starts, and answers the probes', async () => {
    const data = await place.folder()
    const [first] = single!.pod.initContainers as Container[]
    const [program, ...args] = first!.command!.map((it) => it.replaceAll('/data/', `${data}/`))
    const prepare = () => run(program!, args, { cwd: ROOT })
    await prepare()
    const token = readFileSync(join(data, 'first-access-token'), 'utf8').trim()
    expect(token).toMatch(/^lh_admin_/)
    await prepare()
    expect(readFileSync(join(data, 'first-access-token'), 'utf8').trim()).toBe(token)
    const { server, url } = await start(single!.server, { LEASEHOLD_STORE: `file:${data}/store` })
    await probe(single!.server, url)
    // The access token of the first start is the only way in.
    expect(await statusOf(`${url}/metrics`)).toBe(401)
    server.child.kill('SIGTERM')
    expect((await server.ended).code).toBe(0)
  })

  it('shares a store and a key with two more', () => {
    expect(shared!.workload.spec.replicas).toBe(3)
    const { env } = shared!.server
    const store = { secretKeyRef: { name: 'leasehold-store', key: 'url' } }
    expect(env).toContainEqual({ name: 'LEASEHOLD_STORE', valueFrom: store })
    expect(env).toContainEqual({
      name: 'LEASEHOLD_SECRETS_KEY_FILE',
      value: '/secrets/secrets.key',
    })
  })
})
