import { expect, it } from 'vitest'
import { describeWith, Engine, POSTGRES, postgresUrl } from '../../engines/index.ts'
import { runNode } from '../../structure/commands.ts'
import { ROOT } from '../../structure/source-files.ts'

describeWith(POSTGRES, 'the PostgreSQL store', () => {
  it('works as the example shows', async () => {
    const engine = await Engine.start(POSTGRES)
    const url = postgresUrl(engine.port)
    const ran = await runNode(['examples/dist/engines/locks-in-postgres.js', url], ROOT)
    await engine.stop()
    expect(ran).toEqual({
      code: 0,
      stderr: '',
      stdout: 'one holds it: true\ntwo holds it next, with a higher token: true\n',
    })
  })
})
