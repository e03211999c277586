// What Bun and Deno must do: see scripts/runtimes.js.
import { Leasehold } from 'leasehold'
import { connect, withLock } from 'leasehold/client'

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
await leasehold.close()

const memory = await Leasehold.open('memory:')
await memory.withLock('c', () => done.push('memory'))
await memory.close()

console.log(done.join(', '))
