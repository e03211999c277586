import { TLSSocket } from 'node:tls'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  type Clock,
  isLeaseholdError,
  LeaseholdError,
  type LeaseStore,
  type Random,
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
import { packageVersion } from '../config/index.ts'
import { problemFor, sendProblem } from '../http/index.ts'
import { type AdminAction, carryOut } from './admin-actions.ts'
import type { DemoControl } from './demo.ts'

const BODY_BYTES = 16 * 1024

/** The viewer of the page, and the server. */
export interface Me {
  readonly name: string
  /** Whether the viewer is authenticated. Without access tokens, nobody is. */
  readonly isKnown: boolean
  /** Whether the viewer signed in with this browser, and so can sign out. */
  readonly isSignedIn: boolean
  readonly rights: readonly string[]
  readonly engine: string
  readonly durability: string
  readonly version: string
  /** On the server's clock. */
  readonly at: Time
  /** Whether the viewer may start and end the demo. */
  readonly demo: boolean
}

/** The answer before signing in. It is not an error: every page starts with it. */
export interface SignInRequired {
  readonly signIn: string
}

const ACTION_SCHEMA = {
  type: 'object',
  required: ['action', 'why'],
  additionalProperties: false,
  properties: {
    action: { enum: ['revoke', 'take', 'break', 'ask', 'drain', 'return'] },
    lease: { type: 'string' },
    key: { type: 'string' },
    token: { type: 'integer' },
    after: { type: 'number', minimum: 0 },
    service: { type: 'string' },
    instance: { type: 'string' },
    why: { type: 'string', maxLength: 256 },
  },
  oneOf: [
    { properties: { action: { const: 'revoke' } }, required: ['lease'] },
    { properties: { action: { enum: ['take', 'ask'] } }, required: ['key', 'token'] },
    { properties: { action: { const: 'break' } }, required: ['lease', 'after'] },
    { properties: { action: { enum: ['drain', 'return'] } }, required: ['service', 'instance'] },
  ],
} as const

/** The HTTP routes of the page: the viewer, signing in and out, actions, and the demo. */
export function addRoutes(
  app: FastifyInstance,
  access: Access,
  { guarantees }: LeaseStore,
  demo: DemoControl,
  clock: Clock,
  random: Random,
): void {
  const version = packageVersion()
  const { engine, durability } = guarantees
  const routes = async (api: FastifyInstance) => {
    api.addHook('onRequest', (request, reply, done) => {
      reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff')
      if (request.method !== 'GET' && isForeign(request.headers)) throw foreign()
      done()
    })
    api.setErrorHandler((error, _request, reply) => sendProblem(reply, problemFor(error)))
    api.get('/me', async (request): Promise<Me | SignInRequired> => {
      const credentials = credentialsOf(request.raw)
      const principal = identify(access, credentials)
      if ('signIn' in principal) return principal
      const { name, rights } = principal
      return {
        name,
        isKnown: !access.tokens.isEmpty,
        isSignedIn: credentials.session !== undefined && !access.tokens.isEmpty,
        rights: rights.map(writeRight),
        ...{ engine, durability, version, at: clock.now() },
        demo: mayControlDemo(rights),
      }
    })
    addSessions(api, access)
    const options = { schema: { body: ACTION_SCHEMA }, bodyLimit: BODY_BYTES }
    api.post('/actions', options, async (request) => {
      const admission = access.admit(credentialsOf(request.raw))
      try {
        return await carryOut(access, admission, request.body as AdminAction, random)
      } finally {
        admission.leave()
      }
    })
    for (const [method, change] of [
      ['PUT', 'start'],
      ['DELETE', 'end'],
    ] as const) {
      api.route({
        method,
        url: '/demo',
        handler: async (request) => {
          const principal = access.identify(credentialsOf(request.raw))
          demandDemoRight(principal)
          await demo[change]()
          return { demo: demo.state }
        },
      })
    }
  }
  app.register(routes, { prefix: '/dashboard' })
}

function identify(access: Access, credentials: Credentials): Principal | SignInRequired {
  try {
    return access.identify(credentials)
  } catch (error) {
    if (!isLeaseholdError(error, 'unauthenticated')) throw error
    return { signIn: error.message }
  }
}

/** Signing in sends the access token once, in a header; the answer sets a cookie. */
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

/** The demo claims many kinds of keys and revokes what remains of them. */
function mayControlDemo(rights: Principal['rights']): boolean {
  return allows(rights, 'claim', '') && allows(rights, 'admin', '')
}

function demandDemoRight({ name, rights }: Principal): void {
  if (mayControlDemo(rights)) return
  throw new LeaseholdError(
    'forbidden',
    `"${name}" may not start or end the demo: use an access token with 'all:'`,
  )
}

function setCookie(
  { raw, headers }: FastifyRequest,
  reply: FastifyReply,
  value: string,
  ms: number,
): void {
  // A proxy may terminate TLS. The browser's origin then shows the scheme.
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
  return new LeaseholdError('forbidden', 'pages of another origin may not use the dashboard')
}
