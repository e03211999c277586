import { readFileSync } from 'node:fs'
import { TLSSocket } from 'node:tls'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  type Clock,
  isLeaseholdError,
  LeaseholdError,
  type LeaseStore,
  type Time,
} from 'leasehold/port'
import {
  type Access,
  allows,
  type Credentials,
  cookieName,
  credentialsOf,
  isForeign,
  type Principal,
  SESSION_MS,
  writeRight,
} from '../access/index.ts'
import { problemFor, sendProblem } from '../http/index.ts'
import { type Act, carryOut } from './acts.ts'
import type { Demonstration } from './demonstration/index.ts'

const BODY_BYTES = 16 * 1024

/** Who looks, and what they look at. */
export interface Me {
  readonly name: string
  /** Whether the server knows who it is; without tokens it does not ask. */
  readonly isKnown: boolean
  /** Whether they can sign out: they signed in with this browser. */
  readonly isSignedIn: boolean
  readonly rights: readonly string[]
  readonly engine: string
  readonly durability: string
  readonly version: string
  /** On the server's clock. */
  readonly at: Time
  /** Where there is none, nobody can start it. */
  readonly demonstration: boolean
}

/** What somebody is told who has yet to sign in. This is no failure: every page begins with it. */
export interface Nobody {
  readonly wantsToken: string
}

const ACT = {
  type: 'object',
  required: ['act', 'why'],
  additionalProperties: false,
  properties: {
    act: { enum: ['revoke', 'take', 'break', 'drain', 'return'] },
    lease: { type: 'string' },
    key: { type: 'string' },
    token: { type: 'integer' },
    after: { type: 'number', minimum: 0 },
    service: { type: 'string' },
    instance: { type: 'string' },
    why: { type: 'string', maxLength: 256 },
  },
  oneOf: [
    { properties: { act: { const: 'revoke' } }, required: ['lease'] },
    { properties: { act: { const: 'take' } }, required: ['key', 'token'] },
    { properties: { act: { const: 'break' } }, required: ['lease', 'after'] },
    { properties: { act: { enum: ['drain', 'return'] } }, required: ['service', 'instance'] },
  ],
} as const

/** What the page asks by HTTP: who is looking, signing in and out, acts, and the demonstration. */
export function addRoutes(
  app: FastifyInstance,
  access: Access,
  { guarantees }: LeaseStore,
  demonstration: Demonstration,
  clock: Clock,
): void {
  const { version } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { version: string }
  const { engine, durability } = guarantees
  const routes = async (api: FastifyInstance) => {
    api.addHook('onRequest', (request, reply, done) => {
      reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff')
      if (request.method !== 'GET' && isForeign(request.headers)) throw foreign()
      done()
    })
    api.setErrorHandler((error, _request, reply) => sendProblem(reply, problemFor(error)))
    api.get('/me', async (request): Promise<Me | Nobody> => {
      const credentials = credentialsOf(request.raw)
      const principal = identified(access, credentials)
      if ('wantsToken' in principal) return principal
      const { name, rights } = principal
      return {
        name,
        isKnown: !access.tokens.isEmpty,
        isSignedIn: credentials.session !== undefined && !access.tokens.isEmpty,
        rights: rights.map(writeRight),
        ...{ engine, durability, version, at: clock.now() },
        demonstration: mayDemonstrate(rights),
      }
    })
    addSessions(api, access)
    const options = { schema: { body: ACT }, bodyLimit: BODY_BYTES }
    api.post('/acts', options, async (request) => {
      const admission = access.admit(credentialsOf(request.raw))
      try {
        return await carryOut(access, admission, request.body as Act)
      } finally {
        admission.leave()
      }
    })
    for (const [method, act] of [
      ['PUT', 'start'],
      ['DELETE', 'end'],
    ] as const) {
      api.route({
        method,
        url: '/demonstration',
        handler: async (request) => {
          const principal = access.identify(credentialsOf(request.raw))
          demandDemonstration(principal)
          await demonstration[act]()
          return { demonstration: demonstration.state }
        },
      })
    }
  }
  app.register(routes, { prefix: '/dashboard' })
}

function identified(access: Access, credentials: Credentials): Principal | Nobody {
  try {
    return access.identify(credentials)
  } catch (error) {
    if (!isLeaseholdError(error, 'unauthenticated')) throw error
    return { wantsToken: error.message }
  }
}

/** Signing in and out. A token comes in a header, once, and is answered with a cookie. */
function addSessions(api: FastifyInstance, access: Access): void {
  api.post('/session', async (request, reply) => {
    const session = access.signIn(request.headers.authorization)
    if (session !== undefined) setCookie(request, reply, session, SESSION_MS)
    return { signedIn: session !== undefined }
  })
  api.delete('/session', async (request, reply) => {
    setCookie(request, reply, '', 0)
    return { signedIn: false }
  })
}

/** It takes keys of many kinds, and clears away what is left of them. */
function mayDemonstrate(rights: Principal['rights']): boolean {
  return allows(rights, 'claim', '') && allows(rights, 'admin', '')
}

function demandDemonstration({ name, rights }: Principal): void {
  if (mayDemonstrate(rights)) return
  throw new LeaseholdError(
    'forbidden',
    `"${name}" may not start or end the demonstration: ask for a token with 'all:'`,
  )
}

function setCookie(
  { raw, headers }: FastifyRequest,
  reply: FastifyReply,
  value: string,
  ms: number,
): void {
  // A proxy may do the TLS: then the browser says by which scheme it came.
  const isSecure = raw.socket instanceof TLSSocket || headers.origin?.startsWith('https:') === true
  const parts = [
    `${cookieName(raw.socket.localPort, isSecure)}=${value}`,
    'Path=/',
    'HttpOnly',
    'SameSite=Strict',
    `Max-Age=${Math.floor(ms / 1000)}`,
  ]
  if (isSecure) parts.push('Secure')
  reply.header('set-cookie', parts.join('; '))
}

function foreign(): LeaseholdError {
  return new LeaseholdError('forbidden', 'a page of another origin may not do anything here')
}
