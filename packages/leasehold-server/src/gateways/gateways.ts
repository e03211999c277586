import type { FastifyInstance } from 'fastify'
import type { BrakeOptions } from 'leasehold'
import type { Clock, LeaseStore, Random } from 'leasehold/port'
import type { Logger } from 'pino'
import type { Access } from '../access/index.ts'
import type { HttpApi } from '../http/index.ts'
import type { ServerTls } from '../server.ts'
import { startConsulGateway } from './consul/index.ts'
import { startDnsGateway } from './dns/index.ts'
import { serveEureka } from './eureka/index.ts'
import type { KubernetesGateway } from './kubernetes/index.ts'
import { servePrometheusTargets } from './prometheus/index.ts'
import { RegistryView } from './registry-view/index.ts'
import type { XdsGateway, XdsGatewayOptions } from './xds/index.ts'

/** Use port 0 for any free port. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** The gateways that a server runs. Each is off unless it is given. */
export interface GatewayOptions {
  /** Serves the registry as DNS, without access rights. */
  readonly dns?: ListenAddress | undefined
  /** Serves a part of Consul's HTTP API, without access rights. */
  readonly consul?: ListenAddress | undefined
  /** Serves targets for the `http_sd` discovery of Prometheus. */
  readonly prometheus?: boolean | undefined
  /** Serves the registry by the REST protocol of Eureka. */
  readonly eureka?: boolean | undefined
  /** Serves the registry by xDS v3 on this address, with access rights. */
  readonly xds?: ListenAddress | undefined
  /** Serves the Lease API of Kubernetes. */
  readonly kubernetes?: boolean | undefined
  /** The brake on mass eviction of the view that all gateways share. */
  readonly brake?: BrakeOptions | undefined
}

export interface GatewayDependencies {
  readonly store: LeaseStore
  /** The store that refuses instances whose health check this server would not run. */
  readonly registrations: LeaseStore
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** The HTTP server, which does not listen yet, and the API that admits its callers. */
  readonly app: FastifyInstance
  readonly api: HttpApi
  readonly access: Access
  readonly tls?: ServerTls | undefined
}

/** The running gateways of a server. */
export interface Gateways {
  /** The port of DNS; `undefined` if it is off. */
  readonly dnsPort: number | undefined
  /** The port of the Consul API; `undefined` if it is off. */
  readonly consulPort: number | undefined
  /** The port of xDS; `undefined` if it is off. */
  readonly xdsPort: number | undefined
  close(): Promise<void>
}

/** A started gateway, or a part that gateways share. */
interface Started {
  close(): Promise<void>
}

/**
 * Starts the gateways that are given. They answer only when they know everything: until then, and
 * while the server is down, consumers keep what they had.
 */
export async function startGateways(
  options: GatewayOptions,
  dependencies: GatewayDependencies,
): Promise<Gateways> {
  const { dns, consul, prometheus = false, eureka = false, xds, brake } = options
  const started: Started[] = []
  const close = async () => {
    for (const each of started.reverse()) await each.close()
  }
  const start = async <S extends Started>(starting: Promise<S>): Promise<S> => {
    const one = await starting
    started.push(one)
    return one
  }
  try {
    const { clock, log, app, api } = dependencies
    let dnsPort: number | undefined
    let consulPort: number | undefined
    let xdsPort: number | undefined
    if (dns || prometheus || eureka || xds) {
      const view = await start(RegistryView.open({ ...dependencies, brake }))
      if (prometheus) servePrometheusTargets(app, api, view)
      if (eureka) serveEureka({ app, api, view, clock })
      if (dns) dnsPort = (await start(startDnsGateway({ ...dns, view, clock, log }))).port
      if (xds) xdsPort = (await start(startXds({ ...dependencies, ...xds, view }))).port
    }
    if (consul) {
      consulPort = (await start(startConsulGateway({ ...consul, ...dependencies }))).port
    }
    if (options.kubernetes) await start(serveKubernetes(dependencies))
    return { dnsPort, consulPort, xdsPort, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Loads gRPC, which few servers need. */
async function startXds(options: XdsGatewayOptions): Promise<XdsGateway> {
  const { startXdsGateway } = await import('./xds/index.ts')
  return startXdsGateway(options)
}

/** Loads protobuf, which few servers need. */
async function serveKubernetes(options: GatewayDependencies): Promise<KubernetesGateway> {
  const { serveKubernetesLeases } = await import('./kubernetes/index.ts')
  return serveKubernetesLeases(options)
}
