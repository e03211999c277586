import { Client as NewClient } from '@modelcontextprotocol/client'
import { StdioClientTransport as NewStdio } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldStdio } from '@modelcontextprotocol/sdk/client/stdio.js'

/** An agent host that takes a key, says so, and stays until it is killed. */
export async function startAgent(name, [command, ...args], key) {
  const identity = { name: 'killed', version: '1.0.0' }
  const isNew = name === 'client 2'
  const client = isNew ? new NewClient(identity) : new OldClient(identity)
  await client.connect(isNew ? new NewStdio({ command, args }) : new OldStdio({ command, args }))
  const { structuredContent } = await client.callTool({
    name: 'acquire',
    arguments: { keys: [key], purpose: 'to be killed' },
  })
  process.stdout.write(structuredContent.state)
  setInterval(() => {}, 1000)
}
