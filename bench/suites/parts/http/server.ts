/**
 * The measured server, in its own process: the HTTP API, and an empty handler in the same
 * framework. Prints both addresses.
 */
import { fastify } from 'fastify'
import { memoryStore } from 'leasehold/memory'
import { createServer } from 'leasehold-server'

const server = await createServer({ store: memoryStore(), port: 0 })
const app = fastify()
app.post('/empty', async () => ({ key: 'jobs/1', lease: '1.1', token: 1, remaining: 30_000 }))
const empty = await app.listen({ port: 0, host: '127.0.0.1', listenTextResolver: (it) => it })
console.log(JSON.stringify({ api: server.url, empty }))
/** Answers each message with the processor time used so far, in microseconds. */
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send!(user + system)
})
process.on('disconnect', () => process.exit())
