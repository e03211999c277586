import type {
  JSONRPCMessage,
  McpServer,
  MessageExtraInfo,
  Transport,
  TransportSendOptions,
} from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import type { AgentSession } from '../agent-session.ts'
import { refuse } from './answers.ts'
import { agentServer } from './server.ts'
import { Subscriptions } from './subscriptions.ts'

export interface StdioOptions {
  readonly session: AgentSession
  readonly version: string
  readonly breaksFreely?: boolean | undefined
}

/** Serves agents on standard input and output. */
export function serveAgents({ session, ...options }: StdioOptions): void {
  const sessionOf = () => session
  let server: McpServer | undefined
  const subscriptions = new Subscriptions(sessionOf, (uri) => {
    void server?.server.sendResourceUpdated({ uri }).catch(() => {})
  })
  const transport = new ObservedTransport(new StdioServerTransport(), (message) => {
    observe(subscriptions, message)
  })
  serveStdio(
    () => {
      server = agentServer({ sessionOf, ...options })
      answerSubscriptions(server, subscriptions)
      return server
    },
    { transport },
  )
}

/** Clients of 2025 follow one resource with each request. */
export function answerSubscriptions({ server }: McpServer, subscriptions: Subscriptions): void {
  server.setRequestHandler('resources/subscribe', async ({ params }) => {
    await subscriptions.follow(params.uri, server).catch(refuse)
    return {}
  })
  server.setRequestHandler('resources/unsubscribe', async ({ params }) => {
    subscriptions.unfollow(params.uri, server)
    return {}
  })
}

/**
 * Clients of 2026 follow several with one request, which lasts until it is cancelled. The SDK answers
 * it and filters the updates; which resources to watch is read from the messages here.
 */
function observe(subscriptions: Subscriptions, message: JSONRPCMessage): void {
  if (!('method' in message)) return
  const { method, params } = message as { method: string; params?: Record<string, unknown> }
  if (method === 'subscriptions/listen' && 'id' in message) {
    for (const uri of urisIn(params)) void subscriptions.follow(uri, message.id).catch(() => {})
  }
  if (method === 'notifications/cancelled') subscriptions.unfollowAll(params?.['requestId'])
}

/** The resources that a `subscriptions/listen` asks for. */
export function urisIn(params: Record<string, unknown> | undefined): readonly string[] {
  const wanted = params?.['notifications'] as { resourceSubscriptions?: unknown } | undefined
  const uris = wanted?.resourceSubscriptions
  return Array.isArray(uris) ? uris.filter((uri) => typeof uri === 'string') : []
}

/** A transport whose incoming messages are also seen by an observer. */
class ObservedTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage, extra?: MessageExtraInfo) => void
  readonly #inner: StdioServerTransport
  readonly #observer: (message: JSONRPCMessage) => void

  constructor(inner: StdioServerTransport, observer: (message: JSONRPCMessage) => void) {
    this.#inner = inner
    this.#observer = observer
  }

  start(): Promise<void> {
    this.#inner.onclose = () => this.onclose?.()
    this.#inner.onerror = (error) => this.onerror?.(error)
    this.#inner.onmessage = (message: JSONRPCMessage) => {
      this.#observer(message)
      this.onmessage?.(message)
    }
    return this.#inner.start()
  }

  send(message: JSONRPCMessage, _options?: TransportSendOptions): Promise<void> {
    return this.#inner.send(message)
  }

  close(): Promise<void> {
    return this.#inner.close()
  }
}
