import {
  Client as NewClient,
  StreamableHTTPClientTransport as NewHttp,
} from '@modelcontextprotocol/client'
import { StdioClientTransport as NewStdio } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldStdio } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as OldHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { afterFile } from '../../../leasehold/test/setup/after-file.ts'
import { BIN } from '../setup/run-leasehold.ts'

/** What a tool answered. */
export interface Answer {
  readonly isError: boolean
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: each test knows which tool it has called.
  readonly data: any
}

/** An agent host: a real client of MCP. */
export interface Agent {
  readonly pid: number
  call(tool: string, args?: Record<string, unknown>, options?: object): Promise<Answer>
  // biome-ignore lint/suspicious/noExplicitAny: the two clients have different types.
  readonly client: any
  /** Follows resources until the client closes. */
  follow(uris: readonly string[], updated: (uri: string) => void): Promise<void>
  close(): Promise<void>
}

export const CLIENTS = ['client 2', 'sdk 1'] as const
export type ClientName = (typeof CLIENTS)[number]
export const TRANSPORTS = ['stdio', 'HTTP'] as const
export type TransportName = (typeof TRANSPORTS)[number]

const IDENTITY = { name: 'test', version: '1.0.0' }
/** Client 2 also speaks the specification of 2025, which sdk 1 tests. */
const NEWEST = { versionNegotiation: { mode: { pin: '2026-07-28' } } }

interface ClientOptions {
  /** What a person answers when the server asks. Without it, the client cannot ask anybody. */
  readonly person?: (message: string) => boolean | Promise<boolean>
  readonly headers?: Record<string, string>
}

interface HostOptions {
  readonly cwd?: string
  /** A shell starts it, and so is its host. */
  readonly throughShell?: boolean
  /** The program and its first arguments. Default: Node with the program of this repository. */
  readonly program?: readonly string[]
}

/** A host that starts its own `leasehold mcp`. */
export async function startAgent(
  name: ClientName,
  args: readonly string[],
  {
    cwd,
    throughShell,
    program = [process.execPath, BIN],
    ...options
  }: HostOptions & ClientOptions = {},
): Promise<Agent> {
  const own = Object.entries(process.env).filter(([key]) => !key.startsWith('LEASEHOLD_'))
  const command = [...program, 'mcp', ...args]
  // The shell's own arguments do not name the command, as those of a wrapper like npx would.
  const shell = ['sh', '-c', 'eval "$HOST_COMMAND"; exit $?']
  const [started, ...given] = throughShell ? shell : command
  const spawned = {
    command: started!,
    args: given,
    env: { ...Object.fromEntries(own), HOST_COMMAND: command.join(' ') } as Record<string, string>,
    ...(cwd && { cwd }),
  }
  const transport = name === 'client 2' ? new NewStdio(spawned) : new OldStdio(spawned)
  const client = await connected(name, transport, options)
  return agentOn(client, transport.pid!)
}

/** A host that uses `/mcp` of a server. */
export async function httpAgent(
  name: ClientName,
  url: string,
  { headers = {}, ...options }: ClientOptions = {},
): Promise<Agent> {
  const given = { requestInit: { headers } }
  const at = new URL(url)
  const transport = name === 'client 2' ? new NewHttp(at, given) : new OldHttp(at, given)
  const agent = agentOn(await connected(name, transport, options), 0)
  return {
    ...agent,
    // The end of an HTTP client is not the end of its holds.
    close: async () => {
      await agent.call('release', { all: true })
      await agent.close()
    },
  }
}

async function connected(name: ClientName, transport: unknown, { person }: ClientOptions) {
  const capabilities = person === undefined ? {} : { elicitation: { form: {} } }
  const client =
    name === 'client 2'
      ? new NewClient(IDENTITY, { ...NEWEST, capabilities })
      : new OldClient(IDENTITY, { capabilities })
  if (person !== undefined) {
    const answer = async ({ params }: { params: { message: string } }) => ({
      action: 'accept' as const,
      content: { confirm: await person(params.message) },
    })
    if (client instanceof NewClient) client.setRequestHandler('elicitation/create', answer)
    else client.setRequestHandler(ElicitRequestSchema, answer)
  }
  // biome-ignore lint/suspicious/noExplicitAny: the transport is that of the client.
  await client.connect(transport as any)
  afterFile(() => client.close())
  return client
}

// biome-ignore lint/suspicious/noExplicitAny: the two clients have different types.
export function agentOn(client: any, pid: number): Agent {
  return {
    pid,
    client,
    call: async (tool, args = {}, more = {}) => {
      const given = { name: tool, arguments: args }
      const result =
        client instanceof OldClient
          ? await client.callTool(given, undefined, more)
          : await client.callTool(given, more)
      const [first] = result.content as { text: string }[]
      return {
        isError: result.isError === true,
        text: first?.text ?? '',
        data: result.structuredContent,
      }
    },
    follow: async (uris, updated) => {
      if (client instanceof OldClient) {
        client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
          updated(params.uri)
        })
        for (const uri of uris) await client.subscribeResource({ uri })
        return
      }
      client.setNotificationHandler(
        'notifications/resources/updated',
        ({ params }: { params: { uri: string } }) => updated(params.uri),
      )
      await client.listen({ resourceSubscriptions: uris })
    },
    close: () => client.close(),
  }
}
