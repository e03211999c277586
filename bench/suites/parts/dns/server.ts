/**
 * The measured process: a server with the DNS gateway and 40 instances of a service, and the limit,
 * a UDP socket that sends every datagram back. Prints both ports.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { memoryStore } from 'leasehold/memory'
import { createServer } from 'leasehold-server'

const INSTANCES = 40

const store = memoryStore()
for (let at = 0; at < INSTANCES; at++) {
  const key = `services/web/i-${at}`
  const value = JSON.stringify({ address: `10.0.0.${at}:8080`, tags: at < 3 ? ['few'] : [] })
  await store.grant({ holder: 'bench', ttl: 3_600_000, claims: [{ key, value }] })
}
const gateways = { dns: { host: '127.0.0.1', port: 0 } }
const { dnsPort } = await createServer({ store, port: 0, gateways })
const echo = createSocket('udp4').on('message', (bytes, { port, address }) => {
  echo.send(bytes, port, address)
})
echo.bind(0, '127.0.0.1')
await once(echo, 'listening')
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  process.send!(user + system)
})
process.on('disconnect', () => process.exit())
console.log(JSON.stringify({ dns: dnsPort, echo: echo.address().port }))
