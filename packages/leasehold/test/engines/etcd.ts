import { join } from 'node:path'
import { type EngineSpec, findProgram } from './engine.ts'

const program = findProgram('etcd')

/** One etcd, which has every change on the disk before it answers, as it always does. */
export const ETCD: EngineSpec = {
  name: 'etcd',
  program,
  args: (folder, port) => {
    const client = `http://127.0.0.1:${port}`
    // Nobody joins it: the address that it tells others is never used.
    const peer = 'http://127.0.0.1:1'
    return [
      ['--name', 'one', '--data-dir', join(folder, 'data'), '--log-level', 'info'],
      ['--listen-client-urls', client, '--advertise-client-urls', client],
      ['--listen-peer-urls', 'http://127.0.0.1:0', '--initial-advertise-peer-urls', peer],
      ['--initial-cluster', `one=${peer}`],
    ].flat()
  },
  ready: /ready to serve client requests|serving (insecure )?client/i,
}
