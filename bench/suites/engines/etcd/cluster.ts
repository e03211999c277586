import { join } from 'node:path'
import { type Engine, freePort, startEngine } from '../../../engines/start.js'

/** Three etcd members, as in production: a change is on two disks before the answer. */
export async function startCluster(): Promise<readonly Engine[] | undefined> {
  const peers: string[] = []
  while (peers.length < 3) peers.push(`http://127.0.0.1:${await freePort()}`)
  const cluster = peers.map((peer, at) => `m${at}=${peer}`).join()
  const started = await Promise.all(
    peers.map((peer, at) =>
      startEngine('etcd', /ready to serve client requests|serving client/i, (folder, [port]) => {
        const client = `http://127.0.0.1:${port}`
        return [
          ...['--name', `m${at}`, '--data-dir', join(folder, 'data'), '--log-level', 'info'],
          ...['--listen-client-urls', client, '--advertise-client-urls', client],
          ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
          ...['--initial-cluster', cluster],
        ]
      }),
    ),
  )
  const members = started.filter((member) => member !== undefined)
  return members.length === peers.length ? members : undefined
}
