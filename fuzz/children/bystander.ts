import { Leasehold } from 'leasehold'
import { remoteStore } from 'leasehold/remote'

/**
 * An innocent client of both servers. It holds a lock on each, which its client renews. When one is
 * lost although nobody else wants it, the server did not serve its clients.
 */
const [, , , openUrl, guardedUrl, token] = process.argv
const TTL = '5s'

const losses: string[] = []

async function hold(name: string, url: string, more: { token?: string }): Promise<void> {
  const store = await remoteStore(url, more)
  const leasehold = await Leasehold.open(store)
  const lock = await leasehold.lock('bystander/lock', { ttl: TTL })
  lock.signal.addEventListener('abort', () => {
    const why = String(lock.signal.reason)
    // On the open server everybody may revoke everything.
    if (name === 'open' && why.includes('revoked'))
      void leasehold.close().then(() => hold(name, url, more))
    else losses.push(`the lock on the ${name} server was lost: ${why}`)
  })
}

await hold('open', openUrl!, {})
await hold('guarded', guardedUrl!, { token: token! })
process.on('message', () => {
  const [lost] = losses.splice(0)
  const failure = lost === undefined ? {} : { failure: { kind: 'lost-lock', detail: lost } }
  process.send!({ fresh: 0, pause: 0, rss: 0, ...failure })
})
process.on('disconnect', () => process.exit())
process.send!({ ready: true })
