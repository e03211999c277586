import { isLeaseholdError } from 'leasehold'
import { fileStore } from 'leasehold/file'
import type { Actors } from '../actors/actors.js'
import type { Harness } from '../world/harness.js'

/** Schedules all faults between now and `end`. */
export function planFaults(harness: Harness, actors: Actors, end: number): void {
  const { world, faults } = harness
  const { random } = world
  const clients = [...actors.lockers, ...actors.callers]
  const { nodes } = actors
  const now = world.now
  const several = (times: number, happen: () => void): void => {
    for (let left = times + random.next() - 0.5; left > 0; left--) {
      world.at(random.between(now, end), happen)
    }
  }
  several(faults.serverCrashes, () =>
    random.chance(0.4) ? harness.crashServer() : harness.crashServerWriting(),
  )
  several(faults.clientCrashes, () => random.pick(clients).crash())
  several(faults.resourceRestarts, () => actors.resource.restart())
  several(faults.serverPauses, () => harness.servers.any().node.pause(random.between(10, 2500)))
  several(faults.clientPauses, () => random.pick(nodes).pause(random.between(10, 3000)))
  several(faults.suspends, () => random.pick(nodes).suspend(random.between(300, 4000)))
  several(faults.wallJumps, () =>
    random.pick([harness.servers.any().node, ...nodes]).setWall(random.between(-60_000, 60_000)),
  )
  several(faults.cuts, () => cut(harness, actors))
  if (harness.setup.store === 'log') several(faults.cuts, () => cutLog(harness))
  several(faults.fullDisks, () => harness.fillDisk(random.between(300, 5000)))
  several(faults.rivals, () => openTwice(harness))
}

/** Cuts a client off from its server for a while, in one direction or in both. */
function cut(harness: Harness, { nodes }: Actors): void {
  const { world, network, holder } = harness
  const { random } = world
  // Prefer a holder: only a holder can do harm while it knows nothing.
  const holding = random.chance(0.6) && nodes.find(({ name }) => name === holder)
  const node = holding || random.pick(nodes)
  const server = harness.servers.of(node)
  const both = random.chance(0.5)
  const outward = random.chance(0.5)
  if (both || outward) network.cut(node, server.node)
  if (both || !outward) network.cut(server.node, node)
  world.note(node.name, both ? 'is cut off' : outward ? 'is not heard' : 'hears nothing')
  world.after(random.between(50, 5000), () => {
    network.heal(node, server.node)
    network.heal(server.node, node)
  })
}

/** Cuts a server off from the log for a while, in one direction or in both. */
function cutLog(harness: Harness): void {
  const { world, network } = harness
  const { log } = harness.servers
  const { random } = world
  const { node } = harness.servers.any()
  const both = random.chance(0.5)
  const outward = random.chance(0.5)
  if (both || outward) network.cut(node, log.node)
  if (both || !outward) network.cut(log.node, node)
  world.note(node.name, 'is cut off from the log')
  world.after(random.between(50, 5000), () => {
    network.heal(node, log.node)
    network.heal(log.node, node)
    harness.prolong()
  })
}

/** A second process tries to open the disk while the first runs. */
function openTwice(harness: Harness): void {
  const { node, store } = harness.servers.first
  if (!store || !node.running || harness.setup.store !== 'file') return
  harness.world.note('rival', 'opens the disk')
  const rival = { clock: node.clock(), random: node.random, disk: harness.disk }
  fileStore('sim', rival).then(
    () => harness.secondOwner('opened'),
    (error: unknown) => {
      if (!isLeaseholdError(error, 'storage-locked')) harness.secondOwner(String(error))
    },
  )
}

/** Ends all faults, and restarts every process that is down. */
export function heal(harness: Harness, actors: Actors): void {
  harness.world.note('world', 'is healed')
  harness.network.calm()
  harness.calmDisk()
  harness.restartServers()
  for (const actor of [...actors.lockers, ...actors.callers]) actor.restart()
}
