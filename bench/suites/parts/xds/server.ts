/**
 * The measured process: a server with the xDS gateway. Prints its port. On a message it registers
 * another instance, and answers with the time and with the processor time that it has used.
 */
import { memoryStore } from 'leasehold/memory'
import { createServer } from 'leasehold-server'

const INSTANCES = 40

const store = memoryStore()
let count = 0
const register = async () => {
  const at = count++
  const value = JSON.stringify({ address: `10.0.${at >> 8}.${at & 255}:8080` })
  const claims = [{ key: `services/web/i-${at}`, value }]
  await store.grant({ holder: 'bench', ttl: 3_600_000, claims })
}
while (count < INSTANCES) await register()
const gateways = { xds: { host: '127.0.0.1', port: 0 } }
const { xdsPort } = await createServer({ store, port: 0, gateways })
process.on('message', async (message) => {
  const startedAt = performance.timeOrigin + performance.now()
  if (message === 'change') await register()
  const { user, system } = process.cpuUsage()
  process.send!({ startedAt, used: user + system })
})
process.on('disconnect', () => process.exit())
console.log(JSON.stringify({ port: xdsPort }))
