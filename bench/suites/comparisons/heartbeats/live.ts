/**
 * 100,000 live leases, each renewed every 10 s, a third of 30 s: 10,000 renewals a second. Each is
 * a separate request, a hundred of them every hundredth of a second. The result is the share of a
 * core.
 */

import { cpuTime } from '../../../machine/process-usage.js'
import { compareFigures, type Peer } from '../../../measure/compare.js'
import { etcdRenewer, ourRenewer, type Renewer, redisRenewer } from './renewers.js'

const LEASES = 100_000
const PER_SECOND = 10_000
const EVERY_MS = 10
const RUN_MS = 2500

function candidate({ name, pid, renew }: Renewer): Peer {
  let number = 0
  const run = async () => {
    const [server, client] = [cpuTime(pid), process.cpuUsage()]
    const answers: Promise<unknown>[] = []
    const first = number
    const start = performance.now()
    await new Promise<void>((resolve) => {
      const beat = setInterval(() => {
        // Send as many as are due, so that a late timer does not reduce the load.
        const due = first + ((performance.now() - start) / 1000) * PER_SECOND
        while (number < due) answers.push(renew(number++))
        if (performance.now() - start < RUN_MS) return
        clearInterval(beat)
        resolve()
      }, EVERY_MS)
    })
    await Promise.all(answers)
    const { user, system } = process.cpuUsage(client)
    const share = (us: number) => (us / answers.length) * (PER_SECOND / 1e6)
    return { values: [share(cpuTime(pid) - server), share(user + system)] }
  }
  return { name, run }
}

const ours = await ourRenewer(LEASES)
const peers = [await redisRenewer(LEASES), await etcdRenewer(LEASES)]
const rows = await compareFigures({
  name: '100,000 live leases',
  figures: [
    { name: '100,000 live leases, 10,000 renewals/s: server', unit: 'of a core', better: 'less' },
    { name: '100,000 live leases, 10,000 renewals/s: client', unit: 'of a core', better: 'less' },
  ],
  ours: candidate(ours),
  peers: peers.map((one) => one && candidate(one)),
})
await Promise.all([ours, ...peers].map((one) => one?.end()))
console.log(JSON.stringify(rows))
