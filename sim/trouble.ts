import { isLeaseholdError } from 'leasehold'
import { fileStore } from 'leasehold/file'
import type { Cast } from './cast.js'
import type { Scene } from './scene.js'

/** Plans all that goes wrong between now and then. */
export function makeTrouble(scene: Scene, cast: Cast, end: number): void {
  const { world, faults } = scene
  const { random } = world
  const clients = [...cast.lockers, ...cast.callers]
  const { nodes } = cast
  const now = world.now
  const several = (times: number, happen: () => void): void => {
    for (let left = times + random.next() - 0.5; left > 0; left--) {
      world.at(random.between(now, end), happen)
    }
  }
  several(faults.serverCrashes, () =>
    random.chance(0.4) ? scene.crashServer() : scene.crashServerWriting(),
  )
  several(faults.clientCrashes, () => random.pick(clients).crash())
  several(faults.resourceRestarts, () => cast.resource.restart())
  several(faults.serverPauses, () => scene.servers.any().node.pause(random.between(10, 2500)))
  several(faults.clientPauses, () => random.pick(nodes).pause(random.between(10, 3000)))
  several(faults.suspends, () => random.pick(nodes).suspend(random.between(300, 4000)))
  several(faults.wallJumps, () =>
    random.pick([scene.servers.any().node, ...nodes]).setWall(random.between(-60_000, 60_000)),
  )
  several(faults.cuts, () => cut(scene, cast))
  if (scene.casting.store === 'log') several(faults.cuts, () => cutLog(scene))
  several(faults.fullDisks, () => scene.fillDisk(random.between(300, 5000)))
  several(faults.rivals, () => openTwice(scene))
}

/** Somebody is cut off from the server for a while, in one direction or in both. */
function cut(scene: Scene, { nodes }: Cast): void {
  const { world, network, holder } = scene
  const { random } = world
  // It is one who holds that can do harm by not knowing what happens.
  const holding = random.chance(0.6) && nodes.find(({ name }) => name === holder)
  const node = holding || random.pick(nodes)
  const server = scene.servers.of(node)
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

/** A server cannot reach the log for a while, or is not answered. */
function cutLog(scene: Scene): void {
  const { world, network } = scene
  const { log } = scene.servers
  const { random } = world
  const { node } = scene.servers.any()
  const both = random.chance(0.5)
  const outward = random.chance(0.5)
  if (both || outward) network.cut(node, log.node)
  if (both || !outward) network.cut(log.node, node)
  world.note(node.name, 'is cut off from the log')
  world.after(random.between(50, 5000), () => {
    network.heal(node, log.node)
    network.heal(log.node, node)
    scene.prolong()
  })
}

/** A second process tries to own the disk, while the first lives. */
function openTwice(scene: Scene): void {
  const { node, store } = scene.servers.first
  if (!store || !node.running || scene.casting.store !== 'file') return
  scene.world.note('rival', 'opens the disk')
  const rival = { clock: node.clock(), random: node.random, disk: scene.disk }
  fileStore('sim', rival).then(
    () => scene.secondOwner('opened'),
    (error: unknown) => {
      if (!isLeaseholdError(error, 'storage-locked')) scene.secondOwner(String(error))
    },
  )
}

/** From now on nothing goes wrong, and whoever is down comes up again. */
export function heal(scene: Scene, cast: Cast): void {
  scene.world.note('world', 'is healed')
  scene.network.calm()
  scene.calmDisk()
  scene.restartServers()
  for (const actor of [...cast.lockers, ...cast.callers]) actor.restart()
}
