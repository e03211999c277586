/**
 * From a registration to its assignment at 1,000 xDS streams, each on its own connection. All
 * streams are in this one process, so the time contains what it costs to receive them here. The
 * processor time of the server says what a change costs there, whatever else runs.
 */
import { fork } from 'node:child_process'
import { connect } from 'node:http2'
import { fileURLToPath } from 'node:url'
import { atMost, row } from '../../../measure/rows.js'

const STREAMS = 1000
const ROUNDS = 20
const WARM_UP = 10
const ADS = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources'
const ASSIGNMENT = 'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment'

const child = fork(fileURLToPath(new URL('./server.js', import.meta.url)), {
  stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
})
const { port } = await new Promise<{ port: number }>((resolve) => {
  child.stdout!.once('data', (text) => resolve(JSON.parse(String(text))))
})

interface Told {
  readonly startedAt: number
  readonly used: number
}
const tell = (message: string) =>
  new Promise<Told>((resolve) => {
    child.once('message', (told) => resolve(told as Told))
    child.send(message)
  })

/** A request for the assignment of `web`, in a frame of gRPC: fields 3 and 4 are strings. */
function request(): Buffer {
  const field = (id: number, text: string) =>
    Buffer.concat([Buffer.from([id * 8 + 2, text.length]), Buffer.from(text)])
  const message = Buffer.concat([field(3, 'web'), field(4, ASSIGNMENT)])
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

let received: (at: number) => void = () => {}
/** Calls `received` for each whole response. */
function openStream(): void {
  const stream = connect(`http://127.0.0.1:${port}`).request({
    ':method': 'POST',
    ':path': ADS,
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  let unread: Buffer = Buffer.alloc(0)
  stream.on('data', (chunk: Buffer) => {
    unread = unread.length === 0 ? chunk : Buffer.concat([unread, chunk])
    while (unread.length >= 5 && unread.length >= 5 + unread.readUInt32BE(1)) {
      unread = unread.subarray(5 + unread.readUInt32BE(1))
      received(performance.timeOrigin + performance.now())
    }
  })
  stream.write(request())
}

/** The times at which each stream received a response. */
function responses(): Promise<number[]> {
  return new Promise((resolve) => {
    const times: number[] = []
    received = (at) => {
      times.push(at)
      if (times.length === STREAMS) resolve(times)
    }
  })
}

const first = responses()
for (let at = 0; at < STREAMS; at++) openStream()
await first

const last: number[] = []
const median: number[] = []
const cost: number[] = []
for (let round = -WARM_UP; round < ROUNDS; round++) {
  const all = responses()
  const before = await tell('used')
  const { startedAt } = await tell('change')
  const times = await all
  const after = await tell('used')
  if (round < 0) continue
  last.push(times.at(-1)! - startedAt)
  median.push(times[STREAMS / 2]! - startedAt)
  cost.push((after.used - before.used) / 1000)
}

console.log(
  JSON.stringify([
    row('xDS: a change at the last of 1,000 streams', 'ms', last, atMost(100)),
    row('xDS: a change at the middle one of 1,000 streams', 'ms', median),
    row('xDS: processor time of the server for it', 'ms', cost),
  ]),
)
child.disconnect()
process.exit()
