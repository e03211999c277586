import type { FastifyBodyParser, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock, Random } from 'leasehold/port'
import type { AdmissionOf, HttpApi } from '../../http/index.ts'
import { DISCOVERY, OPEN_API_V2, OPEN_API_V2_PROTOBUF, PROTOBUF_TYPE } from './discovery.ts'
import { checkName, checkNamespace, type LeaseObject, leaseObject } from './lease-object.ts'
import { type LeaseQuery, listLeases, parametersOf, readQuery } from './lease-queries.ts'
import { LeaseStorage } from './lease-storage.ts'
import { LeaseWatch } from './lease-watch.ts'
import { keyOf, LeaseWrites, type Place, type Preconditions, type Written } from './lease-writes.ts'
import { applyPatch, PATCH_TYPES } from './patches/index.ts'
import { PROTOBUF, readProtobuf } from './protobuf.ts'
import { badRequest, notFound, Refusal, statusOf, success, VERSION } from './status.ts'
import { tableOf, wantsTable } from './table.ts'

export interface KubernetesGatewayOptions {
  readonly app: FastifyInstance
  readonly api: HttpApi
  readonly clock: Clock
  readonly random: Random
}

export interface KubernetesGateway {
  /** Ends the watches. Their clients connect again. */
  close(): Promise<void>
}

const BASE = '/kubernetes'
const ALL = `/apis/${VERSION}/leases`
const COLLECTION = `/apis/${VERSION}/namespaces/:namespace/leases`
const ITEM = `${COLLECTION}/:name`
/** More than the largest value of a claim, as JSON may be written with more spaces than ours. */
const BODY_BYTES_MAX = 256 * 1024
const WATCHES_MAX = 1000

/**
 * Serves the Lease API of Kubernetes below `/kubernetes`, for its clients without a cluster: kubectl,
 * leader election, heartbeats of nodes.
 *
 * **Not promised.** A Lease of Kubernetes has no expiry: its clients decide by their own clocks when
 * a holder is gone, and a paused holder may go on. The resourceVersion rises with each write and can
 * be used as a fencing token; the number of transitions cannot.
 */
export function serveKubernetesLeases(options: KubernetesGatewayOptions): KubernetesGateway {
  const { app, api } = options
  const watches = new Set<LeaseWatch>()
  api.addProtocol(app, BASE, (routes, admissionOf) => {
    routes.register(async (inner) => {
      addForms(inner)
      addDiscovery(inner)
      new LeaseRoutes(options, admissionOf, watches).addTo(inner)
      inner.all('/*', async ({ method, url }) => {
        throw new Refusal(
          404,
          `${method} ${url.split('?', 1)[0]!.slice(0, 200)} does not exist here`,
        )
      })
    })
  })
  return {
    close: async () => {
      for (const watch of watches) watch.end()
    },
  }
}

/** How bodies are read, and answers and errors written. */
function addForms(routes: FastifyInstance): void {
  routes.setReplySerializer((answer) => JSON.stringify(answer))
  routes.setErrorHandler((error, _request, reply) => {
    const status = statusOf(error)
    if (status.code === 401) reply.header('www-authenticate', 'Bearer')
    if (status.code === 429) reply.header('retry-after', '1')
    return reply.code(status.code).type('application/json').send(status)
  })
  const parse = routes.getDefaultJsonParser('error', 'error')
  const asString = { parseAs: 'string' } as const
  // Some clients delete with an empty body that they call JSON.
  const orNothing: FastifyBodyParser<string> = (request, body, done) =>
    body === '' ? done(null, undefined) : parse(request, body, done)
  routes.addContentTypeParser(['application/json', ...PATCH_TYPES], asString, orNothing)
  const asBuffer = { parseAs: 'buffer' } as const
  routes.addContentTypeParser(PROTOBUF, asBuffer, async (_: FastifyRequest, body: Buffer) =>
    readProtobuf(body),
  )
  routes.addHook('onRoute', (route) => {
    route.bodyLimit = BODY_BYTES_MAX
  })
}

function addDiscovery(routes: FastifyInstance): void {
  for (const [path, document] of Object.entries(DISCOVERY)) {
    routes.get(path, async (_request, reply) => reply.type('application/json').send(document))
  }
  routes.get('/openapi/v2', async ({ headers }, reply) => {
    if (!headers.accept?.includes('protobuf')) return OPEN_API_V2
    return reply.type(PROTOBUF_TYPE).send(OPEN_API_V2_PROTOBUF)
  })
}

class LeaseRoutes {
  readonly #options: KubernetesGatewayOptions
  readonly #admissionOf: AdmissionOf
  readonly #watches: Set<LeaseWatch>

  constructor(
    options: KubernetesGatewayOptions,
    admissionOf: AdmissionOf,
    watches: Set<LeaseWatch>,
  ) {
    this.#options = options
    this.#admissionOf = admissionOf
    this.#watches = watches
  }

  addTo(routes: FastifyInstance): void {
    routes.get(ALL, (request, reply) => this.#list(request, reply, undefined))
    routes.get(COLLECTION, (request, reply) => this.#list(request, reply, namespaceOf(request)))
    routes.post(COLLECTION, async (request, reply) =>
      send(reply, await this.#writes(request).create(namespaceOf(request), request.body)),
    )
    routes.get(ITEM, (request, reply) => this.#get(request, reply))
    routes.put(ITEM, async (request, reply) =>
      send(reply, await this.#writes(request).update(placeOf(request), request.body)),
    )
    routes.patch(ITEM, async (request, reply) =>
      send(reply, await this.#writes(request).patch(placeOf(request), patchOf(request))),
    )
    routes.delete(ITEM, async (request) => {
      const place = placeOf(request)
      const { preconditions, dryRun } = (request.body ?? {}) as DeleteOptions
      const isDry = Array.isArray(dryRun) && dryRun.length > 0
      const writes = this.#writes(request, isDry)
      return success(place.name, await writes.delete(place, preconditions ?? {}))
    })
  }

  async #get(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const place = placeOf(request)
    const version = await this.#storage(request).get(keyOf(place))
    if (version === undefined) throw notFound(place.name)
    const object = leaseObject(version.stored, version.token)
    return reply.type('application/json').send(this.#shown(request)(object))
  }

  async #list(
    request: FastifyRequest,
    reply: FastifyReply,
    namespace: string | undefined,
  ): Promise<unknown> {
    const query = readQuery(request.query, namespace)
    if (query.watches) return this.#watch(request, reply, query)
    const { revision, versions, ...more } = await listLeases(this.#storage(request), query)
    const objects = versions.map(({ stored, token }) => leaseObject(stored, token))
    const metadata = { resourceVersion: String(revision), ...more }
    const answer = wantsTable(request.headers.accept)
      ? tableOf(objects, metadata, this.#options.clock.now())
      : { kind: 'LeaseList', apiVersion: VERSION, metadata, items: objects }
    return reply.type('application/json').send(answer)
  }

  async #watch(
    request: FastifyRequest,
    reply: FastifyReply,
    query: LeaseQuery,
  ): Promise<FastifyReply> {
    if (this.#watches.size >= WATCHES_MAX) {
      throw new Refusal(429, `${WATCHES_MAX} watches are open on this server already: try later`)
    }
    const admission = this.#admissionOf(request)
    const { raw } = reply
    const watch = new LeaseWatch({
      clock: this.#options.clock,
      store: admission.store,
      storage: this.#storage(request),
      query,
      show: this.#shown(request),
      response: raw,
    })
    // Before the first wait: the client may leave meanwhile, and others may come.
    this.#watches.add(watch)
    raw.once('close', () => this.#watches.delete(watch))
    await watch.start()
    admission.ended = (error) => watch.fail(error)
    return reply.hijack()
  }

  /** How the client wants to see an object. */
  #shown({ headers }: FastifyRequest): (object: LeaseObject) => unknown {
    if (!wantsTable(headers.accept)) return (object) => object
    return (object) => {
      const { resourceVersion } = object.metadata
      return tableOf([object], { resourceVersion }, this.#options.clock.now())
    }
  }

  #storage(request: FastifyRequest): LeaseStorage {
    return new LeaseStorage(this.#admissionOf(request))
  }

  #writes(request: FastifyRequest, isDry = false): LeaseWrites {
    const { dryRun, fieldValidation } = parametersOf(request.query)
    if (dryRun !== undefined && dryRun !== 'All') throw badRequest("dryRun must be 'All'")
    return new LeaseWrites(this.#storage(request), {
      clock: this.#options.clock,
      random: this.#options.random,
      dryRun: isDry || dryRun !== undefined,
      strict: fieldValidation === 'Strict',
    })
  }
}

function namespaceOf({ params }: FastifyRequest): string {
  return checkNamespace((params as Place).namespace)
}

function placeOf(request: FastifyRequest): Place {
  return {
    namespace: namespaceOf(request),
    name: checkName((request.params as Place).name),
  }
}

function patchOf({ headers, body }: FastifyRequest): (before: LeaseObject) => unknown {
  const type = (headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase()
  if (PATCH_TYPES.includes(type)) return (before) => applyPatch(type, before, body)
  throw new Refusal(
    415,
    `the patch has the content type "${type.slice(0, 100)}": use ${PATCH_TYPES.join(', ')}. Server-side apply is not supported`,
  )
}

/** The options of a deletion, which may also be in its body. */
interface DeleteOptions {
  readonly preconditions?: Preconditions | null
  readonly dryRun?: unknown
}

function send(reply: FastifyReply, { object, isNew, unknown }: Written): FastifyReply {
  if (unknown.length > 0) {
    const warnings = unknown.map((field) => `299 - "unknown field '${printable(field)}'"`)
    reply.header('warning', warnings.join(', '))
  }
  return reply
    .code(isNew ? 201 : 200)
    .type('application/json')
    .send(object)
}

/** Only what a header may contain. */
function printable(field: string): string {
  return field.slice(0, 100).replace(/[^ !#-[\]-~]/g, '?')
}
