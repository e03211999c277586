import {
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceDefinition,
  status,
} from '@grpc/grpc-js'
import type { FastifyInstance } from 'fastify'
import { invalid, isLeaseholdError, LeaseholdError } from 'leasehold/port'
import type { Logger } from 'pino'
import type { Access, Admission, Credentials } from '../../access/index.ts'
import type { HttpApi } from '../../http/index.ts'
import type { ServerTls } from '../../server.ts'
import { demandReader, type RegistryView } from '../registry-view/index.ts'
import { Answers } from './answers.ts'
import { type DiscoveryRequest, decodeRequest } from './messages.ts'
import { ASSIGNMENT, assignmentJson } from './resources.ts'
import { checkNames, checkZone, Subscriber } from './subscriber.ts'

export interface XdsGatewayOptions {
  readonly view: RegistryView
  readonly access: Access
  readonly log: Logger
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
  readonly tls?: ServerTls | undefined
  /** For EDS over REST. */
  readonly app: FastifyInstance
  readonly api: HttpApi
}

export interface XdsGateway {
  readonly port: number
  close(): Promise<void>
}

type AdsCall = ServerDuplexStream<DiscoveryRequest, Buffer>

const STREAMS_MAX = 10_000
const REQUEST_BYTES_MAX = 256 * 1024
const KEEPALIVE_MS = 30_000

const ADS: ServiceDefinition = {
  StreamAggregatedResources: {
    path: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
    requestStream: true,
    responseStream: true,
    requestDeserialize: decodeRequest,
    requestSerialize: () => Buffer.alloc(0),
    responseSerialize: (response: Buffer) => response,
    responseDeserialize: (bytes: Buffer) => bytes,
  },
}

/** Serves the registry view by xDS v3: ADS over gRPC on its own port, and EDS over REST. */
export async function startXdsGateway(options: XdsGatewayOptions): Promise<XdsGateway> {
  const { host, port, tls, view, app, api } = options
  const answers = new Answers(view)
  const streams = new Streams(options, answers)
  const server = new Server({
    'grpc.max_receive_message_length': REQUEST_BYTES_MAX,
    'grpc.keepalive_time_ms': KEEPALIVE_MS,
  })
  server.addService(ADS, { StreamAggregatedResources: (call: AdsCall) => streams.open(call) })
  const bound = await new Promise<number>((resolve, reject) => {
    const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
    server.bindAsync(address, credentialsFor(tls), (error, chosen) => {
      if (error === null) resolve(chosen)
      else reject(invalid(`xDS cannot listen on ${address}. Use another address with --xds`))
    })
  })
  const stop = view.onChange((changed) => streams.onChange(changed))
  serveRest(app, api, answers)
  return {
    port: bound,
    close: async () => {
      stop()
      // Consumers keep what they had, and connect again.
      server.forceShutdown()
    },
  }
}

class Streams {
  readonly #options: XdsGatewayOptions
  readonly #answers: Answers
  readonly #open = new Set<Subscriber>()

  constructor(options: XdsGatewayOptions, answers: Answers) {
    this.#options = options
    this.#answers = answers
  }

  onChange(changed: ReadonlySet<string>): void {
    for (const subscriber of this.#open) subscriber.onChange(changed)
  }

  open(call: AdsCall): void {
    const admission = this.#admit(call)
    if (admission === undefined) return
    const { principal } = admission
    const subscriber = new Subscriber(principal, this.#answers, (bytes) => {
      const takesMore = call.write(bytes)
      // A consumer that asks and does not read would fill our memory with answers.
      if (!takesMore) call.pause()
      return takesMore
    })
    this.#open.add(subscriber)
    const leave = () => {
      this.#open.delete(subscriber)
      admission.leave()
    }
    const fail = (error: unknown) => {
      leave()
      refuse(call, error)
    }
    admission.ended = fail
    admission.rightsChanged = () => {
      try {
        demandReader(principal)
        subscriber.onRightsChange()
      } catch (error) {
        fail(error)
      }
    }
    call.on('data', (request: DiscoveryRequest) => {
      try {
        const refusal = subscriber.onRequest(request)
        if (refusal === undefined) return
        this.#options.log.warn({ refusal, consumer: principal.name }, 'xDS: a consumer refused')
      } catch (error) {
        fail(error)
      }
    })
    call.on('drain', () => {
      call.resume()
      subscriber.onDrain()
    })
    call.on('end', () => {
      leave()
      call.end()
    })
    for (const event of ['cancelled', 'close', 'error']) call.on(event, leave)
  }

  #admit(call: AdsCall): Admission | undefined {
    try {
      if (this.#open.size >= STREAMS_MAX) {
        throw new LeaseholdError('limit-exceeded', `${STREAMS_MAX} streams are open: try later`)
      }
      const admission = this.#options.access.admit(credentialsIn(call))
      try {
        demandReader(admission.principal)
        return admission
      } catch (error) {
        admission.leave()
        throw error
      }
    } catch (error) {
      refuse(call, error)
      return undefined
    }
  }
}

/** EDS for Envoy over REST, from the same resources. */
function serveRest(app: FastifyInstance, api: HttpApi, answers: Answers): void {
  api.addProtocol(app, '/v3', (routes, admissionOf) => {
    routes.post('/discovery::endpoints', { bodyLimit: REQUEST_BYTES_MAX }, async (request) => {
      const { principal } = admissionOf(request)
      demandReader(principal)
      const { resource_names: given = [], node } = (request.body ?? {}) as Partial<DiscoveryRequest>
      if (!Array.isArray(given) || given.some((name) => typeof name !== 'string')) {
        throw invalid('resource_names must be a list of names of services')
      }
      const names = checkNames(given)
      const consumer = { principal, zone: checkZone(node?.locality?.zone) }
      const resources = names.map((name) => assignmentJson(answers.assignment(consumer, name)))
      return { version_info: answers.version, resources, type_url: ASSIGNMENT }
    })
  })
}

function credentialsFor(tls: ServerTls | undefined): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure()
  const { cert: cert_chain, key: private_key, ca = null } = tls
  return ServerCredentials.createSsl(ca, [{ cert_chain, private_key }], ca !== null)
}

/** An access token in the metadata, or the certificate of the client. */
function credentialsIn(call: AdsCall): Credentials {
  const [authorization] = call.metadata.get('authorization')
  const certificate = call.getAuthContext()?.sslPeerCertificate?.subject?.CN
  return { authorization: authorization?.toString(), certificate, address: call.getPeer() }
}

const CODES: Readonly<Record<string, number>> = {
  unauthenticated: status.UNAUTHENTICATED,
  forbidden: status.PERMISSION_DENIED,
  'limit-exceeded': status.RESOURCE_EXHAUSTED,
}

function refuse(call: AdsCall, error: unknown): void {
  const code = isLeaseholdError(error) ? CODES[error.code] : undefined
  const details = code === undefined ? 'internal error' : (error as Error).message
  call.emit('error', { code: code ?? status.INTERNAL, details })
}
