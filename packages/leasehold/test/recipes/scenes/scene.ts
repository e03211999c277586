import { memoryStore } from '../../../src/stores/memory/index.ts'
import { farAway, type SceneKind, virtual } from './one-scene.ts'
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
