import { expect, it } from 'vitest'
import { describeWith, Engine, ETCD } from '../../engines/index.ts'
import { runNode } from '../../structure/commands.ts'
import { ROOT } from '../../structure/source-files.ts'

describeWith(ETCD, 'the etcd store', () => {
  it('works as the example shows, which then ends by itself', async () => {
    const engine = await Engine.start(ETCD)
    const endpoint = `127.0.0.1:${engine.port}`
    const ran = await runNode(['examples/dist/engines/locks-in-etcd.js', endpoint], ROOT)
    await engine.stop()
    expect(ran).toEqual({
      code: 0,
      stderr: '',
      stdout: 'one holds it: true\ntwo holds it next, with a higher token: true\n',
    })
  })
})
