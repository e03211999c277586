import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { freePort } from '../../../../leasehold/test/engines/engine.ts'
import { describeWith, Engine, nginx } from '../../../../leasehold/test/engines/index.ts'
import { exampleFile, gatewayScene } from '../gateway-scene.ts'
import { addressOf, ask, Backends } from './backends.ts'

const EXAMPLE = exampleFile('nginx.conf')

describeWith(
  nginx(() => EXAMPLE),
  'nginx with examples/discovery/nginx.conf',
  () => {
    it('uses what is registered, and not what left', async () => {
      // A restarted server must have the same port.
      const dns = { host: '127.0.0.1', port: await freePort() }
      const { registry, server, restart } = await gatewayScene({ dns })
      const backends = await new Backends().start()
      const register = (at: number) =>
        registry.register('web', { id: `i-${at}`, address: `${addressOf(at)}:${backends.port}` })
      const [first] = await Promise.all([1, 2, 3].map(register))
      let url = ''
      const engine = await Engine.start(
        nginx((folder, port) => {
          url = `http://127.0.0.1:${port}/`
          const file = join(folder, 'nginx.conf')
          const text = readFileSync(EXAMPLE, 'utf8')
            .replace('127.0.0.1:8600', `127.0.0.1:${server.dnsPort}`)
            .replace('127.0.0.1:8080', `127.0.0.1:${port}`)
            .replaceAll('9000', String(backends.port))
          writeFileSync(file, text)
          return file
        }),
      )
      afterAll(() => engine.stop())
      const used = async () => {
        const answers = await Promise.all(Array.from({ length: 30 }, () => ask(url)))
        return [...new Set(answers.map(({ status, body }) => `${status} ${body}`))].sort()
      }
      const all = [1, 2, 3].map((at) => `200 ${addressOf(at)}`)
      const wait = { timeout: 20_000, interval: 50 }
      await expect.poll(used, wait).toEqual(all)
      await first!.release()
      await expect.poll(used, wait).toEqual(all.slice(1))
      // From now on it would refuse connections.
      backends.dead.add(addressOf(1))
      expect(await used()).toEqual(all.slice(1))
      expect(backends.refused).toEqual([])
      // It remembers an answer for a second, and fails then until the server is back.
      await restart(async () => {
        await expect.poll(used, wait).toEqual([expect.stringMatching(/^502/)])
      })
      await expect.poll(used, wait).toEqual(all.slice(1))
    }, 60_000)
  },
)
