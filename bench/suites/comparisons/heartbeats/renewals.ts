/**
 * Renewals per second over one connection: one lease per call with a thousand calls in flight, and
 * a thousand leases per call, as our client sends them. The latter is a hand-written script in
 * Redis, and does not exist in etcd. Redis does not write to the disk here. ioredis sends the
 * commands of one turn together, like our client.
 */
import { compare } from '../../../measure/compare.js'
import { type Operation, throughput } from '../../../measure/latency-and-throughput.js'
import { etcdRenewer, ourRenewer, type Renewer, redisRenewer } from './renewers.js'

const LEASES = 10_000
const WIDTH = 1000
const RUN_MS = 600

function oneEach({ name, pid, renew }: Renewer) {
  const act = (worker: number): Operation => {
    return (number) => renew(worker + number * WIDTH)
  }
  return { name, pids: [pid], run: () => throughput(act, WIDTH, RUN_MS) }
}

function manyEach({ name, pid, renewMany }: Renewer) {
  const numbers = Array.from({ length: WIDTH }, (_, at) => at)
  const act = (worker: number): Operation => {
    return () => renewMany!(numbers.map((number) => number + worker * WIDTH))
  }
  const run = async () => {
    const { value, count } = await throughput(act, 8, RUN_MS)
    return { value: value * WIDTH, count: count * WIDTH }
  }
  return { name, pids: [pid], run }
}

const ours = await ourRenewer(LEASES)
const peers = [await redisRenewer(LEASES), await etcdRenewer(LEASES)]
const figure = { unit: 'renewals/s', better: 'more' } as const
const rows = await compare({
  ...figure,
  name: 'renewals, a call each',
  ours: oneEach(ours),
  peers: peers.map((one) => one && oneEach(one)),
})
rows.push(
  ...(await compare({
    ...figure,
    name: `renewals, ${WIDTH.toLocaleString('en')} in a call`,
    ours: manyEach(ours),
    peers: peers.map((one) => (one?.renewMany ? manyEach(one) : undefined)),
  })),
)
await Promise.all([ours, ...peers].map((one) => one?.end()))
console.log(JSON.stringify(rows))
