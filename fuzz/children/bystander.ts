import { Leasehold } from 'leasehold'
import { remoteStore } from 'leasehold/remote'

/**
 * A well-behaved client of both servers. It holds a lock on each, which its client renews. If it
 * loses one although nobody else wants it, the server did not serve its clients.
 */
const [, , , openUrl, guardedUrl, accessToken] = process.argv
const TTL = '5s'

const losses: string[] = []

async function hold(name: string, url: string, more: { accessToken?: string }): Promise<void> {
  const store = await remoteStore(url, more)
  const leasehold = await Leasehold.open(store)
  const lock = await leasehold.lock('bystander/lock', { ttl: TTL })
  lock.signal.addEventListener('abort', () => {
    const why = String(lock.signal.reason)
    // On the open server, every client may revoke everything.
    if (name === 'open' && why.includes('revoked'))
      void leasehold.close().then(() => hold(name, url, more))
    else losses.push(`the lock on the ${name} server was lost: ${why}`)
  })
}

await hold('open', openUrl!, {})
await hold('guarded', guardedUrl!, { accessToken: accessToken! })
process.on('message', () => {
  const [lost] = losses.splice(0)
  const failure = lost === undefined ? {} : { failure: { kind: 'lost-lock', detail: lost } }
  process.send!({ fresh: 0, pause: 0, rss: 0, ...failure })
})
process.on('disconnect', () => process.exit())
process.send!({ ready: true })
