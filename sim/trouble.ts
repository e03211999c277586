import type { Cast } from './cast.js'
import type { Scene } from './scene.js'

/** Plans all that goes wrong between now and then. */
export function makeTrouble(scene: Scene, cast: Cast, end: number): void {
  const { world, faults, server } = scene
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
  several(faults.serverPauses, () => server.node.pause(random.between(10, 2500)))
  several(faults.clientPauses, () => random.pick(nodes).pause(random.between(10, 3000)))
  several(faults.suspends, () => random.pick(nodes).suspend(random.between(300, 4000)))
  several(faults.wallJumps, () =>
    random.pick([server.node, ...nodes]).setWall(random.between(-60_000, 60_000)),
  )
  several(faults.cuts, () => cut(scene, cast))
  several(faults.rivals, () => scene.openTwice())
}

/** Somebody is cut off from the server for a while, in one direction or in both. */
function cut({ world, server, network, holder }: Scene, { nodes }: Cast): void {
  const { random } = world
  // It is one who holds that can do harm by not knowing what happens.
  const holding = random.chance(0.6) && nodes.find(({ name }) => name === holder)
  const node = holding || random.pick(nodes)
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

/** From now on nothing goes wrong, and whoever is down comes up again. */
export function heal(scene: Scene, cast: Cast): void {
  scene.world.note('world', 'is healed')
  scene.network.calm()
  scene.calmDisk()
  scene.restartServer()
  for (const actor of [...cast.lockers, ...cast.callers]) actor.restart()
}
