import { memoryStore } from 'leasehold/memory'
import { createServer } from 'leasehold-server'
import { describe, expect, it } from 'vitest'
import { Crowd, faultsOf, TcpProxy } from './index.ts'

/** A server of ours, and a crowd that reaches it through a connection that can be cut. */
async function scene() {
  const store = memoryStore()
  const server = await createServer({ store, port: 0 })
  const line = await TcpProxy.to(Number(new URL(server.url).port))
  const crowd = await Crowd.gather({
    module: new URL('./open-remote.ts', import.meta.url),
    argument: `http://127.0.0.1:${line.port}`,
    prefix: 'faults/',
    ttl: 1000,
  })
  return { store, server, line, crowd }
}

describe('a crowd that locks the same keys of a server', { concurrent: true }, () => {
  it('finds no violation when connections are cut and processes are frozen and killed', async () => {
    const { store, server, line, crowd } = await scene()
    await crowd.allHold()
    const [first, second] = crowd.members
    first!.freeze()
    await crowd.holdings(20)
    line.cut('to-client')
    await pause(1500)
    line.heal()
    first!.thaw()
    second!.kill()
    await crowd.holdings(20)
    line.loseReplies()
    await crowd.until('a reply was lost', 10_000, () => line.repliesLost > 0)
    line.heal()
    line.reset()
    await pause(200)
    line.heal()
    await crowd.join()
    await crowd.allHold()
    expect(faultsOf(await crowd.leave())).toEqual([])
    await line.close()
    await server.close()
    await store.close()
  })

  it('notices when a store forgets its leases and starts its tokens again', async () => {
    const { store, server, line, crowd } = await scene()
    await crowd.holdings(30)
    const opened: { close(): Promise<void> }[] = [line, server, store]
    const found = () => faultsOf(crowd.history).map((fault) => fault.split(':')[0])
    // The tokens of a key are random, so one new store need not repeat any.
    while (!found().includes('a token that repeats')) {
      const forgetful = memoryStore()
      const other = await createServer({ store: forgetful, port: 0 })
      opened.push(other, forgetful)
      line.retarget(Number(new URL(other.url).port))
      line.reset()
      line.heal()
      await crowd.holdings(30)
    }
    await crowd.leave()
    expect(found()).toContain('a token that goes down')
    for (const one of opened) await one.close()
  })
})

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
