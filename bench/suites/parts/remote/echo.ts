/** The limit: a process that only sends every frame back. */
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false })
server.on('connection', (socket) => {
  socket.on('message', (data, binary) => socket.send(data, { binary }))
})
server.on('listening', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
