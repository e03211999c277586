import type { Scene } from './scene.ts'

/** Cases by name; each gets its own scene. */
export type Topic = Readonly<Record<string, (scene: Scene) => Promise<void>>>
