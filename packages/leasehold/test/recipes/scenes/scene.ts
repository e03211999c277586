import { memoryStore } from '../../../src/stores/memory/index.ts'
import { farAway, type Scene, type SceneKind, virtual } from './one-scene.ts'
import { OTHER_SCENES } from './other-scenes.ts'

export type { Scene } from './one-scene.ts'

/** Every kind of store that the tests of recipes run on, fastest first. */
export const SCENES: readonly SceneKind[] = [
  { name: 'memory', make: () => virtual((clock) => memoryStore({ clock })) },
  {
    name: 'memory, far away',
    make: () => virtual((clock) => farAway(memoryStore({ clock }), clock)),
  },
  ...OTHER_SCENES,
]

/** The body of a test that runs in a new scene, which is closed afterwards. */
export const inNewScene =
  (make: SceneKind['make']) => (play: (scene: Scene) => Promise<void>) => async () => {
    const scene = await make()
    try {
      await play(scene)
    } finally {
      await scene.close()
    }
  }
