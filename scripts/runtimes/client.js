// What Bun and Deno must do: see scripts/runtimes.js.
import { Leasehold } from 'leasehold'
import { connect, withLock } from 'leasehold/client'
import { remoteStore } from 'leasehold/remote'

const url = process.env['LEASEHOLD_URL']
const done = []

const client = await connect(url)
await withLock(client, 'a', {}, () => done.push('locked'))
await client.close()

const leasehold = await Leasehold.open(url)
const first = await leasehold.lock('b')
const { token } = first
const second = leasehold.lock('b', { wait: '10s' })
await first.release()
if ((await second).token > token) done.push('waited in turn')

const store = await remoteStore(url)
let sawRemoval
const watched = new Promise((resolve) => {
  sawRemoval = resolve
})
const lost = leasehold.withLock('d', ({ signal }) => {
  store.watch({ prefix: 'd' }, ({ type, events }) => {
    if (type === 'watching') void store.revoke({ target: { key: 'd' }, why: 'disk full' })
    else if (events?.[0].type === 'removed') sawRemoval()
  })
  const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
  return Promise.all([watched, aborted])
})
await lost.catch(({ message }) => done.push(/disk full/.test(message) ? 'lost' : message))
await store.close()
await leasehold.close()

const memory = await Leasehold.open('memory:')
await memory.withLock('c', () => done.push('memory'))
await memory.close()

console.log(done.join(', '))
