import { expect, it } from 'vitest'
import { describeWith, Engine, REDIS } from '../../engines/index.ts'
import { runNode } from '../../structure/commands.ts'
import { ROOT } from '../../structure/source-files.ts'

describeWith(REDIS, 'the Redis example', () => {
  it('prints the documented output', async () => {
    const engine = await Engine.start(REDIS)
    const url = `redis://127.0.0.1:${engine.port}`
    const ran = await runNode(['examples/dist/engines/locks-in-redis.js', url], ROOT)
    expect(ran).toEqual({
      code: 0,
      stderr: '',
      stdout: 'one holds it: true\ntwo holds it next, with a higher token: true\n',
    })
    await engine.stop()
  })
})
