import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RegisterOptions } from 'leasehold'
import { afterAll, describe, expect, it } from 'vitest'
import { freePort } from '../../../../leasehold/test/engines/engine.ts'
import { describeWith, Engine, envoy } from '../../../../leasehold/test/engines/index.ts'
import { addressOf, ask, Backends } from '../dns/backends.ts'
import { exampleFile, gatewayScene } from '../gateway-scene.ts'

const WAIT = { timeout: 30_000, interval: 50 }

/** A server, backends, and Envoy with a file of examples/discovery and the ports of this test. */
async function envoyScene(example: string) {
  // A restarted server must have the same port.
  const xdsPort = await freePort()
  const scene = await gatewayScene({ xds: { host: '127.0.0.1', port: xdsPort } })
  const backends = await new Backends().start()
  const { port: ownPort } = new URL(scene.url)
  let url = ''
  const start = async () => {
    const engine = await Engine.start(
      envoy((folder, port) => {
        url = `http://127.0.0.1:${port}/`
        const file = join(folder, 'envoy.yaml')
        const text = readFileSync(exampleFile(example), 'utf8')
          .replace('port_value: 8080', `port_value: ${port}`)
          .replace('port_value: 18000', `port_value: ${xdsPort}`)
          .replace('port_value: 7420', `port_value: ${ownPort}`)
        writeFileSync(file, text)
        return file
      }),
    )
    afterAll(() => engine.stop())
  }
  const register = (at: number, more: RegisterOptions = {}) => {
    const address = `${addressOf(at)}:${backends.port}`
    return scene.registry.register('web', { id: `i-${at}`, address, ...more })
  }
  /** Which backends answered, and how often; a failure counts by its status. */
  const tally = async (requests: number) => {
    const counts: Record<string, number> = {}
    const each = async () => {
      const { status, body } = await ask(url)
      const name = status === 200 ? body : String(status)
      counts[name] = (counts[name] ?? 0) + 1
    }
    for (let at = 0; at < requests; at += 20) await Promise.all(Array.from({ length: 20 }, each))
    return counts
  }
  const used = async () => Object.keys(await tally(60)).sort()
  return { scene, backends, start, register, tally, used }
}

describeWith(
  envoy(() => ''),
  'Envoy',
  () => {
    describe.each(['envoy.yaml', 'envoy-rest.yaml'])('with examples/discovery/%s', (example) => {
      it('balances by weight, in its own zone first, and not over what left', async () => {
        const { start, register, tally, used, backends } = await envoyScene(example)
        const near = await register(1, { zone: 'eu-1', weight: 3 })
        await register(2, { zone: 'eu-1', weight: 1 })
        await register(3, { zone: 'us-1', weight: 100 })
        await register(4, { zone: 'eu-1', weight: 0 })
        await start()
        await expect.poll(used, WAIT).toEqual([addressOf(1), addressOf(2)])
        const { [addressOf(1)]: heavy = 0, [addressOf(2)]: light = 0, ...others } = await tally(400)
        expect(others).toEqual({})
        expect(heavy + light).toBe(400)
        // Three quarters, within six standard deviations.
        expect(Math.abs(heavy - 300)).toBeLessThan(52)
        await near.release()
        await expect.poll(used, WAIT).toEqual([addressOf(2)])
        backends.dead.add(addressOf(1))
        expect(await tally(60)).toEqual({ [addressOf(2)]: 60 })
        expect(backends.refused).toEqual([])
      }, 90_000)

      it('uses another zone if nothing is left in its own', async () => {
        const { start, register, used } = await envoyScene(example)
        const near = await register(1, { zone: 'eu-1' })
        await register(2, { zone: 'us-1' })
        await start()
        await expect.poll(used, WAIT).toEqual([addressOf(1)])
        await near.release()
        await expect.poll(used, WAIT).toEqual([addressOf(2)])
      }, 90_000)

      it('keeps what it had while the server is down, and learns what changed when it is back', async () => {
        const { start, register, tally, used, scene } = await envoyScene(example)
        await register(1)
        await start()
        await expect.poll(used, WAIT).toEqual([addressOf(1)])
        await scene.restart(async () => {
          expect(await tally(100)).toEqual({ [addressOf(1)]: 100 })
          await register(2)
        })
        await expect.poll(used, WAIT).toEqual([addressOf(1), addressOf(2)])
      }, 90_000)
    })
  },
)
